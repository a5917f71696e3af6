import { create } from "@bufbuild/protobuf";
import { LogHeadSchema } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { expect, test } from "vitest";
import { addedGrowth, faultBySize } from "./log-growth.ts";

const head = (treeSize: bigint, byte: number) =>
  create(LogHeadSchema, { treeSize, rootHash: new Uint8Array(32).fill(byte) });

test.each([
  ["a larger log", head(3n, 1), head(4n, 2), undefined],
  ["the same head", head(3n, 1), head(3n, 1), undefined],
  ["a smaller log", head(3n, 1), head(2n, 2), "the log has 2 leaves, and had 3"],
  ["another root", head(3n, 1), head(3n, 2), "the log has another root for the same 3 leaves"],
])("%s: the sizes alone show whether it can extend the previous head", (_, first, second, fault) => {
  expect(faultBySize(first, second)).toBe(fault);
});

test("a fault stays after later consistent heads", () => {
  const bad = { proofs: 0, since: head(1n, 1), fault: "why" };
  const good = { proofs: 1, since: head(2n, 1), fault: undefined };
  expect(addedGrowth(addedGrowth(good, bad), good)).toEqual({ proofs: 2, since: good.since, fault: "why" });
});
