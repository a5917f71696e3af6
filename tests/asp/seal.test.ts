import { createHash, createPublicKey, verify } from "node:crypto";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { refusal } from "@depute/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALPHA, BETA, documentOf, GAMMA, overHttp, proofAt, write } from "./cast.ts";
import { type Platform, register, startPlatform } from "./platform.ts";
import { invite, play } from "./scenario.ts";

/** A reader of seals that has nothing of the platform: SHA-256 and Ed25519 of Node.js, and RFC 8785 for plain values. */

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
  for (const one of [ALPHA, BETA, GAMMA]) await register(platform, one);
});
afterAll(() => platform.stop());

interface Seal {
  readonly key: string;
  readonly recordHash: string;
  readonly signature: string;
  readonly log: {
    readonly index: number;
    readonly loggedAt: string;
    readonly hashes?: readonly string[];
    readonly logKey: string;
    readonly treeSize: number;
    readonly rootHash: string;
    readonly signedAt: string;
    readonly signature: string;
  };
}

type Sealed = JsonObject & { readonly messages: JsonObject[]; readonly seal: Seal };

const get = async (path: string) => documentOf(await fetch(`${platform.url}${path}`));
const transcriptOf = async (sessionId: string) =>
  (await get(`/v1/asp/sessions/${sessionId}/transcript`)) as unknown as Sealed;

const sha256 = (...parts: readonly (string | Buffer)[]) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 8785 for what transcripts hold: Node.js writes numbers and strings as it asks. */
function canonical(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name] as JsonValue)}`).join(",")}}`;
}

const hexOf = (text: string) => Buffer.from(text.slice(text.indexOf(":") + 1), "hex");

function isSigned(tag: string, body: JsonValue, signature: string, x: string): boolean {
  const key = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
  return verify(null, Buffer.from(`${tag}\0${canonical(body)}`), key, hexOf(signature));
}

function headOf({ seal, messages, lastHash = "", sessionId = "" }: Sealed) {
  const { recordHash } = seal;
  return { format: "asp-session-head/0.1", lastHash, length: messages.length, recordHash, sessionId };
}

/** The root that an audit path leads to. (RFC 9162 2.1.3.2) */
function rootOf(leaf: Buffer, { index, treeSize, hashes = [] }: Seal["log"]): Buffer {
  let [at, last, hash] = [index, treeSize - 1, leaf];
  for (const other of hashes.map(hexOf)) {
    const isRight = at % 2 === 1 || at === last;
    hash = isRight ? sha256(Buffer.from([1]), other, hash) : sha256(Buffer.from([1]), hash, other);
    while (isRight && at % 2 === 0 && at !== 0) [at, last] = [at >> 1, last >> 1];
    [at, last] = [at >> 1, last >> 1];
  }
  return hash;
}

test("a seal is checked with the published keys and nothing of the platform", async () => {
  const { sessionId } = await play(
    new Map([ALPHA, BETA, GAMMA].map((one) => [one, overHttp(platform.url)])),
    9,
  );
  const transcript = await transcriptOf(sessionId);
  const {
    format = "",
    lastHash = "",
    participants = [],
    messages,
    seal,
    exportedAt = "",
    state = "",
  } = transcript;
  const keys = await get("/v1/asp/keys");
  expect(keys).toEqual({
    format: "asp-transcript-keys/0.1",
    sealKeys: [seal.key],
    logKeys: [seal.log.logKey],
  });

  const hashes = messages.map((entry) => `sha256:${sha256(canonical(entry)).toString("hex")}`);
  const record = canonical({ format, lastHash, messages: hashes, participants, sessionId });
  expect(`sha256:${sha256(record).toString("hex")}`).toBe(seal.recordHash);
  const head = headOf(transcript);
  const body = { exportedAt, head, key: seal.key, state };
  expect(isSigned("delegateos-asp-transcript-v1", body, seal.signature, seal.key)).toBe(true);

  const { log } = seal;
  const digest = sha256(canonical(head)).toString("base64url");
  const leaf = canonical({ digest, kind: "session_head", time: Date.parse(log.loggedAt) });
  const root = rootOf(sha256(Buffer.from([0]), leaf), log);
  expect(root.toString("hex")).toBe(hexOf(log.rootHash).toString("hex"));
  const signed = {
    log: log.logKey,
    rootHash: root.toString("base64url"),
    time: Date.parse(log.signedAt),
    treeSize: log.treeSize,
  };
  expect(isSigned("delegateos-log-head-v1", signed, log.signature, log.logKey)).toBe(true);
  expect(await get(`/log/proofs/inclusion?digest=${digest}`)).toMatchObject({
    entry: { index: log.index, kind: "session_head" },
  });
});

test("the same head is logged once, another head is another leaf", async () => {
  const wire = overHttp(platform.url);
  const { sessionId } = await invite(wire);
  const size = async () => (await get("/log/head")).treeSize as number;
  const before = await size();
  const first = await transcriptOf(sessionId);
  const again = await Promise.all([1, 2, 3].map(() => transcriptOf(sessionId)));
  expect(await size()).toBe(before + 1);
  for (const { seal } of again) expect(seal.log.index).toBe(first.seal.log.index);
  await wire.append(write(BETA, "ACCEPT", { referenceId: "inv" }, await wire.get(sessionId)));
  const next = await transcriptOf(sessionId);
  expect(next.seal.log.index).not.toBe(first.seal.log.index);
  expect(await size()).toBe(before + 2);
});

test("a caller with a key of its own cannot write heads into the log", async () => {
  const transport = createGrpcJsTransport(new URL(platform.url).host);
  const log = createClient(LogService, transport);
  const hash = `sha256:${"0".repeat(64)}`;
  const head = {
    sessionId: "019526b1-0000-7000-8000-000000000002",
    length: 1,
    lastHash: hash,
    recordHash: hash,
  };
  const headers = { dpop: proofAt(ALPHA, `${platform.url}/${LogService.typeName}/AppendSessionHead`) };
  expect(await refusal(log.appendSessionHead(head, { headers }))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  transport.close();
});
