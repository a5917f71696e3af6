import { afterEach, describe, expect, test } from "vitest";
import { regexMatch, setIdRule } from "./contract-patterns.ts";

afterEach(() => setIdRule("strict"));

describe("patterns of ids", () => {
  test.each([
    ["^del_[0-9a-f]{12}$", "del_001", false, true],
    ["^del_[0-9a-f]{12}$", "del_0123456789ab", true, true],
    ["^ct_[0-9a-f]{12}$", "ct_demo", false, true],
    ["^att_[0-9a-f]{12}$", "", false, false],
    ["^(att_[0-9a-f]{12})?$", "", true, true],
    ["^(att_[0-9a-f]{12})?$", "att 1", false, false],
    ["^att_[0-9a-f]{12}$", "a".repeat(129), false, false],
    // A pattern that is not for an id has the same result under both id rules.
    ["^[A-Za-z0-9_-]{43}$", "del_001", false, false],
  ])("%s accepts %j: %s, relaxed %s", (pattern, text, strict, relaxed) => {
    expect(regexMatch(pattern, text)).toBe(strict);
    setIdRule("relaxed");
    expect(regexMatch(pattern, text)).toBe(relaxed);
  });
});
