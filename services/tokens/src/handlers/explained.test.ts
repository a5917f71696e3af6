import type { Identity } from "@depute/service";
import { describe, expect, it } from "vitest";
import type { TokensContext } from "../context.ts";
import { viewerOf } from "./explained.ts";

const tokens = { auditors: new Set(["named"]) } as unknown as TokensContext;
const ada: Identity = { principal: "ada", local: false, organization: "acme" };

describe("the explanation of a subject", () => {
  it.each<[string, Partial<Identity>, readonly string[], string, boolean]>([
    ["is visible to a party of the chain", {}, ["root", "ada"], "", true],
    ["is hidden from other principals", {}, ["root", "bob"], "", false],
    ["is hidden from other principals of the owning organization", {}, ["bob"], "acme", false],
    ["is visible to `local`", { local: true, principal: "local" }, ["bob"], "globex", true],
    ["is visible to an auditor", { roles: ["auditor"] }, ["bob"], "globex", true],
    ["is visible to a principal of DEPUTE_AUDITORS", { principal: "named" }, ["bob"], "globex", true],
    [
      "is visible to an auditor of the organization",
      { organizationRoles: ["auditor"] },
      ["bob"],
      "acme",
      true,
    ],
    [
      "is hidden from an auditor of another organization",
      { organizationRoles: ["auditor"] },
      ["bob"],
      "globex",
      false,
    ],
    [
      "is hidden from an auditor of an organization if the subject has none",
      { organizationRoles: ["auditor"] },
      ["bob"],
      "",
      false,
    ],
    [
      "is hidden from a login without an organization",
      { organization: "", organizationRoles: ["auditor"] },
      ["bob"],
      "",
      false,
    ],
  ])("%s", (_, caller, parties, organization, sees) => {
    expect(viewerOf(tokens, { ...ada, ...caller }).maySee(parties, organization)).toBe(sees);
  });
});
