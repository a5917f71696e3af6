import { ErrorReason } from "@depute/core";
import { expect, test } from "vitest";
import { advance, type WitnessedHead } from "./witnessed-head.ts";

const { LOG_HEAD_OLDER, LOG_HEAD_CONTRADICTS, LOG_HEAD_MOVED } = ErrorReason;
const kept: WitnessedHead = { signer: "log", size: 5, digest: "five", rootChange: 3 };
const good = { firstSize: 5, holds: () => true };
const bad = { firstSize: 5, holds: () => false };

test.each([
  ["the first head", undefined, kept, undefined, "newer"],
  ["the first head, with any proof", undefined, kept, bad, "newer"],
  ["the same state", kept, { ...kept }, undefined, "same"],
  ["a longer log with a proof", kept, { ...kept, size: 6, digest: "six" }, good, "newer"],
  ["the same state after a change of a root key", kept, { ...kept, rootChange: 4 }, undefined, "newer"],
  ["a longer log without proofs", kept, { ...kept, size: 6, digest: "six" }, undefined, "newer"],
] as const)("a witness accepts %s", (_, before, next, proof, outcome) => {
  expect(advance(before, next, proof)).toBe(outcome);
});

test.each([
  ["a shorter log", { ...kept, size: 4, digest: "four" }, undefined, LOG_HEAD_OLDER],
  ["a shorter log, whatever its proof says", { ...kept, size: 0, digest: "" }, good, LOG_HEAD_OLDER],
  ["other entries of the same number", { ...kept, digest: "other" }, good, LOG_HEAD_CONTRADICTS],
  ["an earlier change of a root key", { ...kept, rootChange: 2 }, undefined, LOG_HEAD_OLDER],
  ["a longer log without the change", { ...kept, size: 6, rootChange: 0 }, undefined, LOG_HEAD_OLDER],
  ["another signer", { ...kept, signer: "other", size: 9 }, good, LOG_HEAD_CONTRADICTS],
  ["another signer of the same state", { ...kept, signer: "other" }, good, LOG_HEAD_CONTRADICTS],
  ["a longer log with a wrong proof", { ...kept, size: 6, digest: "x" }, bad, LOG_HEAD_CONTRADICTS],
  ["a proof from elsewhere", { ...kept, size: 6, digest: "x" }, { ...good, firstSize: 4 }, LOG_HEAD_MOVED],
] as const)("a witness refuses %s", (_, next, proof, reason) => {
  expect(() => advance(kept, next, proof)).toThrow(
    expect.objectContaining({ reason, metadata: expect.objectContaining({ size: "5" }) }),
  );
});
