import { expect, test } from "vitest";
import { codeOfFailure, failureWord, readActions } from "./error-actions.ts";

test("the action for an error code is the table's, unless a setting replaces it", () => {
  const actionOf = readActions(["502=reassign", "123=retry"]);
  expect([502, 123, 504, 124].map(actionOf)).toEqual(["reassign", "retry", "retry", "escalate"]);
});

test.each(["502", "502=", "502=shrug", "x=retry", "=retry", "1e3=retry"])(
  "a setting without a meaning is refused: %s",
  (entry) => {
    expect(() => readActions([entry])).toThrow(entry);
  },
);

test.each([
  [504, "CAP_504", 504],
  [0, "CAP_0", 0],
  [2_147_483_647, "CAP_2147483647", 2_147_483_647],
  [-5, "CAP_ERROR", 500],
])("the code %i is the failure %s", (code, word, back) => {
  expect(failureWord(code)).toBe(word);
  expect(codeOfFailure(word)).toBe(back);
});

test.each([
  ["LEASE_LOST", 408],
  ["REVIEW_REJECTED", 422],
  ["SOMETHING_ELSE", 500],
])("the failure %s is the code %i", (word, code) => {
  expect(codeOfFailure(word)).toBe(code);
});
