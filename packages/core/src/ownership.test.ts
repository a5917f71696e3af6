import { describe, expect, it } from "vitest";
import { owningOrganization } from "./ownership.ts";

const acme = { organization: "acme" };
const globex = { organization: "globex" };
const none = { organization: "" };

describe("owningOrganization", () => {
  it.each([
    ["a record that stands for itself belongs to the caller's organization", acme, undefined, "acme"],
    ["a caller without organization creates a record without owner", none, undefined, ""],
    ["a part belongs to the owner of the whole", acme, acme, "acme"],
    ["a caller of another organization does not take a part over", globex, acme, "acme"],
    ["a caller without organization does not take a part away", none, acme, "acme"],
    ["a part of a record without owner has none", acme, none, ""],
  ])("%s", (_, caller, above, owner) => {
    expect(owningOrganization(caller, above)).toBe(owner);
  });
});
