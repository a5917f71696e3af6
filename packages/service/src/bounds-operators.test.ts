import { expect, test } from "vitest";
import { BoundsOperators } from "./bounds-operators.ts";

const caller = (principal: string) => ({ principal });

test.each<[string, readonly string[], "open" | "required", boolean, boolean]>([
  ["no operator, on an open loopback", [], "open", true, true],
  ["no operator, with credentials required", [], "required", false, false],
  ["an operator, on an open loopback", ["boss"], "open", false, true],
  ["an operator, with credentials required", ["boss"], "required", false, true],
])("with %s, an owner and the principal `boss` may widen: %s", (_, names, auth, owner, boss) => {
  const operators = new BoundsOperators(names, auth);
  expect([operators.mayWiden(caller("owner")), operators.mayWiden(caller("boss"))]).toEqual([owner, boss]);
});

test.each<[readonly string[], "open" | "required", string[]]>([
  [[], "open", ["info: DEPUTE_BOUNDS_OPERATORS is empty: owners may widen their agents' bounds"]],
  [
    [],
    "required",
    ["warn: DEPUTE_BOUNDS_OPERATORS is empty: only the role operator widens the bounds of an agent"],
  ],
  [["boss"], "open", []],
])("the start logs the effect of the operators %j with authentication %s", (names, auth, expected) => {
  const lines: string[] = [];
  const log = {
    info: (line: string) => lines.push(`info: ${line}`),
    warn: (line: string) => lines.push(`warn: ${line}`),
  };
  new BoundsOperators(names, auth).announce(log as never);
  expect(lines).toEqual(expected);
});
