import { expect, test } from "vitest";
import { fullOwner } from "./open-tasks.ts";

const max = { principal: 2, organization: 3 };

test.each([
  ["nothing", { principal: 0, organization: 0 }, undefined],
  ["one place of each owner", { principal: 1, organization: 2 }, undefined],
  ["no place of the principal", { principal: 2, organization: 2 }, "principal"],
  ["no place of the organization", { principal: 1, organization: 3 }, "organization"],
  ["no place of either", { principal: 2, organization: 3 }, "principal"],
  ["more than a lowered maximum", { principal: 9, organization: 9 }, "principal"],
] as const)("with %s, the owner without a place is named", (_, open, full) => {
  expect(fullOwner(open, max)).toBe(full);
});
