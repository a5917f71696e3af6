import { toTimestamp } from "@depute/core";
import { generateKeypair, type Keypair } from "@depute/dct";
import {
  consistencyRanges,
  foldNodes,
  leafHash,
  nodeHash,
  signCheckpoint,
  signLogHead,
  signRootChange,
} from "@depute/dct/transparency";
import { as } from "@depute/service/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { delegator, engine } from "../testing/contracts.ts";
import { type Platform, refusal, startPlatform } from "../testing/platform.ts";

const NOW = Date.UTC(2026, 0, 1);
const log = generateKeypair(engine);
const other = generateKeypair(engine);
const { sha256 } = engine;

/** Returns the root hash over some leaves, computed from its definition (RFC 6962 2.1). */
function rootOf(leaves: readonly string[]): Uint8Array {
  if (leaves.length === 0) return foldNodes(sha256, []);
  const [only] = leaves;
  if (leaves.length === 1) return leafHash(sha256, Buffer.from(only ?? ""));
  const split = 2 ** Math.ceil(Math.log2(leaves.length) - 1);
  return nodeHash(sha256, rootOf(leaves.slice(0, split)), rootOf(leaves.slice(split)));
}

const leavesOf = (size: number, branch = "") => Array.from({ length: size }, (_, i) => `${branch}leaf ${i}`);

function headOf(size: number, { branch = "", by = log, time = NOW } = {}) {
  const head = { log: by.principal.id, treeSize: size, rootHash: rootOf(leavesOf(size, branch)), time };
  const { log: id, rootHash } = head;
  const signature = signLogHead(engine, head, by);
  const value = { log: id, treeSize: BigInt(size), rootHash, headTime: toTimestamp(time), signature };
  return { case: "logHead" as const, value };
}

/**
 * Returns the request that publishes a later head. It contains the proof that the later head continues the kept head.
 */
function grown(first: number, second: number, { from = "", to = "" } = {}) {
  const leaves = leavesOf(second, from);
  const consistencyProof = consistencyRanges(first, second).map(({ begin, end }) =>
    rootOf(leaves.slice(begin, end)),
  );
  return { head: headOf(second, { branch: to }), firstSize: BigInt(first), consistencyProof };
}

function checkpointOf(sequence: number, head: string, by: Keypair = log) {
  const signedAt = new Date(NOW).toISOString();
  const { signer, signature } = signCheckpoint(engine, { sequence, head }, signedAt, by);
  const signed = Buffer.from(signature, "base64url");
  const value = {
    ...{ sequence: BigInt(sequence), head, signer, signature: signed },
    signTime: toTimestamp(NOW),
  };
  return { case: "revocationCheckpoint" as const, value };
}

/** Returns a checkpoint that states the number of the last change of a root key. */
function rootedAt(rootChange: number, { sequence = 5, head = digest("e"), signed = rootChange } = {}) {
  const { value } = checkpointOf(sequence, head);
  const stated = {
    sequence,
    head,
    signer: value.signer,
    signedAt: new Date(NOW).toISOString(),
    signature: "",
  };
  const rootChangeSignature = Buffer.from(signRootChange(engine, stated, signed, log), "base64url");
  const rooted = { ...value, rootChange: BigInt(rootChange), rootChangeSignature };
  return { case: "revocationCheckpoint" as const, value: rooted };
}

const digest = (letter: string) => `${letter.repeat(42)}A`;

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
beforeEach(() => platform.witness.deleteWitnessedPlatform({ platform: "local" }));
afterAll(() => platform.stop());

describe("a witness", () => {
  test("keeps the newest head of each log, also across a restart", async () => {
    for (const [first, second] of [
      [0, 0],
      [0, 1],
      [1, 6],
      [6, 7],
      [7, 64],
    ] as const)
      await platform.witness.publishLogHead(grown(first, second));
    await platform.witness.publishLogHead({ head: checkpointOf(0, "") });
    await platform.witness.publishLogHead({ head: checkpointOf(3, digest("c")) });
    await platform.restart();
    const { platform: record } = await platform.witness.getWitnessedPlatform({});
    expect(record).toMatchObject({ platform: "local", logHead: { treeSize: 64n, log: log.principal.id } });
    expect(record?.revocationCheckpoint).toMatchObject({ sequence: 3n, head: digest("c") });
    const { platforms } = await platform.witness.listWitnessedPlatforms({});
    expect(platforms).toEqual([record]);
  });

  test("keeps the newest change of a root key, also without another entry of the log", async () => {
    for (const head of [checkpointOf(5, digest("e")), rootedAt(1), rootedAt(3)]) {
      const { platform: record } = await platform.witness.publishLogHead({ head });
      expect(record?.revocationCheckpoint).toMatchObject(head.value);
    }
  });

  test("changes nothing after a repeated publication", async () => {
    await platform.witness.publishLogHead({ head: headOf(3) });
    const first = await platform.witness.getWitnessedPlatform({});
    const again = await platform.witness.publishLogHead({ head: headOf(3, { time: NOW + 1000 }) });
    expect(again.platform).toEqual(first.platform);
  });
});

describe("a witness refuses", () => {
  const forgedHead = () => {
    const head = headOf(9);
    return { head: { ...head, value: { ...head.value, signature: new Uint8Array(64) } } };
  };
  const resized = () => {
    const head = headOf(5);
    return { head: { ...head, value: { ...head.value, treeSize: 9n } }, firstSize: 5n };
  };
  const forgedCheckpoint = () => {
    const head = checkpointOf(9, digest("z"));
    return { head: { ...head, value: { ...head.value, head: digest("y") } } };
  };

  test.each([
    ["a head with another signature", forgedHead, "SIGNATURE_INVALID", undefined],
    ["a signed head with another size", resized, "SIGNATURE_INVALID", undefined],
    ["a checkpoint with other content", forgedCheckpoint, "SIGNATURE_INVALID", undefined],
    ["an older head", () => ({ head: headOf(4) }), "LOG_HEAD_OLDER", "5"],
    ["an older checkpoint", () => ({ head: checkpointOf(4, digest("d")) }), "LOG_HEAD_OLDER", "5"],
    [
      "other leaves of the same number",
      () => ({ head: headOf(5, { branch: "x" }) }),
      "LOG_HEAD_CONTRADICTS",
      "5",
    ],
    ["another checkpoint", () => ({ head: rootedAt(3, { head: digest("x") }) }), "LOG_HEAD_CONTRADICTS", "5"],
    ["a head of another log", () => ({ head: headOf(9, { by: other }) }), "LOG_HEAD_CONTRADICTS", "5"],
    [
      "a checkpoint of another root",
      () => ({ head: checkpointOf(9, digest("x"), other) }),
      "LOG_HEAD_CONTRADICTS",
      "5",
    ],
    ["a longer log that rewrote its past", () => grown(5, 9, { to: "x" }), "LOG_HEAD_CONTRADICTS", "5"],
    ["the proof of such a log", () => grown(5, 9, { from: "x", to: "x" }), "LOG_HEAD_CONTRADICTS", "5"],
    ["a longer log without a proof", () => ({ head: headOf(9), firstSize: 5n }), "LOG_HEAD_CONTRADICTS", "5"],
    ["a proof from another head", () => grown(3, 9), "LOG_HEAD_MOVED", "5"],
    ["an earlier change of a root key", () => ({ head: rootedAt(2) }), "LOG_HEAD_OLDER", "5"],
    [
      "a longer log of before a change of a root key",
      () => ({ head: rootedAt(2, { sequence: 6, head: digest("f") }) }),
      "LOG_HEAD_OLDER",
      "5",
    ],
    [
      "a head without a change of a root key",
      () => ({ head: checkpointOf(5, digest("e")) }),
      "LOG_HEAD_OLDER",
      "5",
    ],
    [
      "a change of a root key with another signature",
      () => ({ head: rootedAt(4, { signed: 5 }) }),
      "SIGNATURE_INVALID",
      undefined,
    ],
    ["no head", () => ({}), "INVALID_REQUEST", undefined],
  ])("%s, and keeps its head", async (_, request, reason, size) => {
    await platform.witness.publishLogHead({ head: headOf(5) });
    await platform.witness.publishLogHead({ head: rootedAt(3) });
    const before = await platform.witness.getWitnessedPlatform({});
    expect(await refusal(platform.witness.publishLogHead(request()))).toMatchObject({
      reason,
      ...(size !== undefined && { metadata: { size } }),
    });
    expect(await platform.witness.getWitnessedPlatform({})).toEqual(before);
  });

  test.each([
    ["a long root", { rootHash: new Uint8Array(33) }, "log_head.root_hash"],
    ["a long signature", { signature: new Uint8Array(65) }, "log_head.signature"],
    ["a negative size", { treeSize: -1n }, "log_head.tree_size"],
    ["a malformed key", { log: "x".repeat(1000) }, "log_head.log"],
  ])("%s, for its form", async (_, change, field) => {
    const head = headOf(5);
    const request = { head: { ...head, value: { ...head.value, ...change } } };
    expect(await refusal(platform.witness.publishLogHead(request))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: [field],
    });
  });

  test("a proof with more hashes than the maximum", async () => {
    const consistencyProof = Array.from({ length: 65 }, () => new Uint8Array(32));
    const request = { head: headOf(5), consistencyProof };
    expect(await refusal(platform.witness.publishLogHead(request))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });
});

describe("the record of a platform", () => {
  test.each([
    [
      "publishes",
      () => platform.witness.publishLogHead({ head: headOf(1) }, as(delegator.principal.id)),
      "platform",
    ],
    [
      "is read",
      () => platform.witness.getWitnessedPlatform({ platform: "local" }, as(delegator.principal.id)),
      "platform,auditor,operator",
    ],
    [
      "is listed",
      () => platform.witness.listWitnessedPlatforms({}, as(delegator.principal.id)),
      "auditor,operator",
    ],
    [
      "is deleted",
      () => platform.witness.deleteWitnessedPlatform({ platform: "local" }, as(delegator.principal.id)),
      "operator",
    ],
  ])("%s with the roles of the contract alone", async (_, call, roles) => {
    expect(await refusal(call())).toMatchObject({ reason: "CALLER_NOT_ALLOWED", metadata: { roles } });
  });

  test("is refused above the limit", async () => {
    const full = await startPlatform(["--verifier-max-witnessed-platforms", "0"]);
    expect(await refusal(full.witness.publishLogHead({ head: headOf(1) }))).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "witnessed_platforms", max: "0" },
    });
    expect((await full.witness.listWitnessedPlatforms({})).platforms).toEqual([]);
    await full.stop();
  });

  test("is new after an operator deleted it", async () => {
    await platform.witness.publishLogHead({ head: headOf(5) });
    const remove = () => platform.witness.deleteWitnessedPlatform({ platform: "local" });
    expect(await remove()).toMatchObject({ deleted: true });
    expect(await remove()).toMatchObject({ deleted: false });
    expect(await refusal(platform.witness.getWitnessedPlatform({}))).toMatchObject({
      reason: "WITNESSED_PLATFORM_NOT_FOUND",
      metadata: { platform: "local" },
    });
    await platform.witness.publishLogHead({ head: headOf(2, { by: other }) });
  });
});
