import { createRevocation, type RevocationEntry, verifyRevocation } from "@depute/dct";
import { type Checkpoint, isSignedCheckpoint, signCheckpoint } from "@depute/dct/transparency";
import { describe, expect, it } from "vitest";
import { alice, engine, id, mallory, otherRoot } from "../testing/holders.ts";
import {
  contentDigest,
  isContinued,
  isSignedByItsSigner,
  NO_HEAD,
  nextHead,
  type PublicCheckpoint,
  signPublicCheckpoint,
} from "./checkpoint.ts";
import {
  isSignedKeyRevocation,
  type KeyStatement,
  signKeyRevocation,
  statementId,
} from "./key-revocation.ts";

const AT = "2026-01-01T00:00:00.000Z";
const entry = (n: number) => createRevocation(engine, `${"A".repeat(42)}${"AEIM"[n]}`, "block", alice, 0);

const heads = (entries: readonly RevocationEntry[]) => {
  const all: string[] = [];
  for (const [i, one] of entries.entries()) {
    all.push(nextHead(engine, all.at(-1) ?? NO_HEAD, contentDigest(engine, i + 1, { entry: one })));
  }
  return all;
};

describe("the head of a log", () => {
  it("covers everything up to it, in order", () => {
    const [a, b, c] = [entry(1), entry(2), entry(3)] as [RevocationEntry, RevocationEntry, RevocationEntry];
    const headEntries = heads([a, b, c]);
    expect(heads([a, b, c])).toEqual(headEntries);
    expect(heads([a, b])[1]).toBe(headEntries[1]);
    for (const other of [
      [b, a, c],
      [a, c, b],
      [a, b],
      [a, b, { ...c, scope: "chain" as const }],
    ]) {
      expect(heads(other).at(-1)).not.toBe(headEntries[2]);
    }
  });

  it.each([
    ["continues", { sequence: 2, head: "h" }, "h", true],
    ["was empty", { sequence: 0, head: NO_HEAD }, undefined, true],
    ["lost entries", { sequence: 2, head: "h" }, undefined, false],
    ["has other entries", { sequence: 2, head: "h" }, "g", false],
  ])("shows whether a log that %s can be the same one (R3)", (_, knownLog, then, expected) => {
    expect(isContinued(knownLog, then)).toBe(expected);
  });
});

describe("a checkpoint with the last change of a root key", () => {
  const state = { sequence: 3, head: "h", signedAt: AT, rootChange: 2 };
  const checkpoint = signPublicCheckpoint(engine, state, otherRoot);
  const { rootChange, rootChangeSignature, ...plain } = checkpoint;

  it.each<[string, PublicCheckpoint, boolean]>([
    ["as it was signed", checkpoint, true],
    ["without the change, for a reader that does not know it", plain, true],
    ["with an earlier change", { ...checkpoint, rootChange: 1 }, false],
    ["with a change that is not signed", { ...plain, rootChange }, false],
    ["with the signature of the log alone", { ...checkpoint, rootChangeSignature: plain.signature }, false],
    ["with the head of another state", { ...checkpoint, head: "g" }, false],
    [
      "with the change of another state",
      {
        ...checkpoint,
        rootChangeSignature: signPublicCheckpoint(engine, { ...state, head: "g" }, otherRoot)
          .rootChangeSignature,
      },
      false,
    ],
    [
      "with the signature of the change in place of the log's",
      { ...checkpoint, signature: rootChangeSignature },
      false,
    ],
  ])("%s", (_, presented, expected) => {
    expect(isSignedByItsSigner(engine, presented)).toBe(expected);
  });
});

describe("a checkpoint", () => {
  const checkpoint = signCheckpoint(engine, { sequence: 3, head: "h" }, AT, otherRoot);
  const changed: [string, Partial<Checkpoint>][] = [
    ["sequence", { sequence: 2 }],
    ["head", { head: "g" }],
    ["time", { signedAt: "2026-01-01T00:00:00.001Z" }],
    ["signer", { signer: id(mallory) }],
    ["signature", { signature: "A".repeat(86) }],
  ];

  it("is valid for its signer only", () => {
    expect(isSignedCheckpoint(engine, checkpoint, id(otherRoot))).toBe(true);
    expect(isSignedCheckpoint(engine, checkpoint, id(mallory))).toBe(false);
    const ownCheckpoint = signCheckpoint(engine, { sequence: 3, head: "h" }, AT, mallory);
    expect(isSignedCheckpoint(engine, ownCheckpoint, id(otherRoot))).toBe(false);
  });

  it.each(changed)("is invalid with another %s", (_, change) => {
    expect(isSignedCheckpoint(engine, { ...checkpoint, ...change }, id(otherRoot))).toBe(false);
  });

  it("is not valid as another kind of statement, nor the reverse (K9)", () => {
    const statement = signKeyRevocation(engine, { key: id(alice), keepBefore: 0, now: 0 }, alice);
    expect(isSignedKeyRevocation(engine, statement)).toBe(true);
    // Each kind of statement has its own signature tag. So a checkpoint's signature is never valid on a key revocation,
    // even if both have the same members.
    const { signature, ...body } = checkpoint;
    const asKey = { ...body, revokedBy: body.signer, signature } as unknown as KeyStatement;
    expect(isSignedKeyRevocation(engine, asKey)).toBe(false);
    const { signature: other, ...said } = statement;
    const asCheckpoint = { ...said, signer: said.revokedBy, signature: other } as unknown as Checkpoint;
    expect(isSignedCheckpoint(engine, asCheckpoint, id(alice))).toBe(false);
    expect(verifyRevocation(engine, { ...statement, revocationId: said.key, scope: "block" }).ok).toBe(false);
  });
});

describe("a key's revocation", () => {
  const statement = signKeyRevocation(engine, { key: id(alice), keepBefore: 5, now: 9 }, otherRoot);

  it.each<[string, Partial<KeyStatement>]>([
    ["key", { key: id(mallory) }],
    ["time", { keepBefore: "1970-01-01T00:00:00.000Z" }],
    ["revoker", { revokedBy: id(mallory) }],
    ["date", { revokedAt: "1970-01-01T00:00:00.000Z" }],
  ])("is invalid with another %s", (_, change) => {
    expect(isSignedKeyRevocation(engine, statement)).toBe(true);
    expect(isSignedKeyRevocation(engine, { ...statement, ...change })).toBe(false);
  });

  it("has an id that depends on all its members, like a block's", () => {
    const name = statementId(engine, statement);
    expect(name).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(statementId(engine, { ...statement, keepBefore: "1970-01-01T00:00:00.000Z" })).not.toBe(name);
  });
});
