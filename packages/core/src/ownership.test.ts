import { describe, expect, it } from "vitest";
import { owningOrganization } from "./ownership.ts";

const acme = { organization: "acme" };
const globex = { organization: "globex" };
const none = { organization: "" };

describe("owningOrganization", () => {
  it.each([
    ["a separate record belongs to the caller's organization", acme, undefined, "acme"],
    ["a caller without organization creates a record without owner", none, undefined, ""],
    ["a part of a record belongs to its owner", acme, acme, "acme"],
    ["a part by a caller of another organization belongs to the record's owner", globex, acme, "acme"],
    ["a part by a caller without organization belongs to the record's owner", none, acme, "acme"],
    ["a part of a record without owner has none", acme, none, ""],
  ])("%s", (_, caller, above, owner) => {
    expect(owningOrganization(caller, above)).toBe(owner);
  });
});
