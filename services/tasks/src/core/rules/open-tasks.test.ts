import { expect, test } from "vitest";
import { fullOwner } from "./open-tasks.ts";

const max = { principal: 2, organization: 3 };

test.each([
  ["nothing", { principal: 0, organization: 0 }, undefined],
  ["one free place of each owner", { principal: 1, organization: 2 }, undefined],
  ["no free place of the principal", { principal: 2, organization: 2 }, "principal"],
  ["no free place of the organization", { principal: 1, organization: 3 }, "organization"],
  ["no free place of either", { principal: 2, organization: 3 }, "principal"],
  ["more open tasks than a lowered maximum", { principal: 9, organization: 9 }, "principal"],
] as const)("with %s, the owner at its maximum is named", (_, open, full) => {
  expect(fullOwner(open, max)).toBe(full);
});
