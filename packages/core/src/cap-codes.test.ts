import { expect, test } from "vitest";
import { CAP_CODES, capActionOf, capCodeOf } from "./cap-codes.ts";
import { DeputeError, ErrorReason } from "./errors.ts";

test.each<[number, string]>([
  [400, "escalate"],
  [401, "escalate"],
  [403, "reassign"],
  [404, "escalate"],
  [408, "retry"],
  [409, "retry"],
  [413, "escalate"],
  [415, "escalate"],
  [422, "escalate"],
  [429, "retry"],
  [500, "retry"],
  [502, "retry"],
  [503, "reassign"],
  [504, "retry"],
  [123, "escalate"],
  [-1, "escalate"],
  [200, "escalate"],
])("%i: %s", (code, action) => {
  expect(capActionOf(code)).toBe(action);
});

test("every reason of the vocabulary is a listed code", () => {
  for (const reason of Object.values(ErrorReason)) {
    expect(CAP_CODES.has(capCodeOf(DeputeError.received(reason, "no"))), String(reason)).toBe(true);
  }
});

test.each([
  ["json_bytes", 400],
  ["attachments", 400],
  ["tree.depth", 422],
  ["tree.children", 422],
  ["inbox", 429],
])("the limit %s is %i", (limit, code) => {
  expect(capCodeOf({ reason: ErrorReason.LIMIT_EXCEEDED, metadata: { limit } })).toBe(code);
});
