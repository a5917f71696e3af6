import type { Identity } from "@depute/service";
import { describe, expect, it } from "vitest";
import type { TokensContext } from "../context.ts";
import { viewerOf } from "./explained.ts";

const tokens = { auditors: new Set(["named"]) } as unknown as TokensContext;
const ada: Identity = { principal: "ada", local: false, organization: "acme" };

describe("who sees the explanation of a subject", () => {
  it.each<[string, Partial<Identity>, readonly string[], string, boolean]>([
    ["a party of the chain", {}, ["root", "ada"], "", true],
    ["no party", {}, ["root", "bob"], "", false],
    ["no party, in the organization that owns it", {}, ["bob"], "acme", false],
    ["`local`", { local: true, principal: "local" }, ["bob"], "globex", true],
    ["an auditor", { roles: ["auditor"] }, ["bob"], "globex", true],
    ["a principal of DEPUTE_AUDITORS", { principal: "named" }, ["bob"], "globex", true],
    ["an auditor of the organization", { organizationRoles: ["auditor"] }, ["bob"], "acme", true],
    ["an auditor of another organization", { organizationRoles: ["auditor"] }, ["bob"], "globex", false],
    [
      "an auditor of an organization, of what has none",
      { organizationRoles: ["auditor"] },
      ["bob"],
      "",
      false,
    ],
    [
      "one whose login names no organization",
      { organization: "", organizationRoles: ["auditor"] },
      ["bob"],
      "",
      false,
    ],
  ])("%s", (_, caller, parties, organization, sees) => {
    expect(viewerOf(tokens, { ...ada, ...caller }).maySee(parties, organization)).toBe(sees);
  });
});
