import { expect, test } from "vitest";
import { verdict } from "./tally.ts";

test.each([
  { isCi: true, skipped: [], fails: false, says: [] },
  { isCi: false, skipped: [], fails: false, says: [] },
  {
    isCi: true,
    skipped: ["a > b"],
    fails: true,
    says: ["*** SKIPPED, and with CI=true that is a failure:", "***   a > b", ""],
  },
  {
    isCi: false,
    skipped: ["a > b"],
    fails: false,
    says: ["*** SKIPPED, and with CI=true that would be a failure:", "***   a > b", ""],
  },
])("with CI=$isCi and skipped $skipped", ({ isCi, skipped, fails, says }) => {
  const last = `3 passed, 2 failed, ${skipped.length} skipped`;
  expect(verdict({ passed: 3, failed: 2, skipped, repeated: [] }, isCi)).toEqual({
    lines: [...says, last],
    fails,
  });
});

test("names the tests that passed only in a repetition, and passes", () => {
  const tally = { passed: 3, failed: 0, skipped: [], repeated: ["a > b"] };
  const lines = ["*** PASSED ONLY WHEN REPEATED:", "***   a > b", "", "3 passed, 0 failed, 0 skipped"];
  expect(verdict(tally, true)).toEqual({ lines, fails: false });
});
