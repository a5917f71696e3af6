import { MintTokenRequestSchema, TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { A2AService } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { type DeputeError, ErrorReason } from "@depute/core";
import { describe, expect, it, test } from "vitest";
import { noCredentials, parseCredentials } from "../credentials.ts";
import type { RoleName } from "../identities/identities-schema.ts";
import { DEFAULT_ROLES, type RoleHolder, requireRole } from "./caller-roles.ts";
import { rolesOfMethod } from "./method-roles.ts";

const KEY = "A".repeat(43);
const credentials = parseCredentials(
  JSON.stringify([
    { principal: "ada", sha256: "a".repeat(64), roles: ["auditor"] },
    { principal: KEY, roles: ["minter"] },
  ]),
);

/** Returns the roles that the refusal of a caller names; undefined if the caller is admitted. */
function missing(
  names: readonly RoleName[],
  caller: RoleHolder,
  principal: string,
  bySettings: readonly RoleName[] = [],
): string | undefined {
  try {
    requireRole({ isForAny: false, names }, caller, principal, { credentials, bySettings: () => bySettings });
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ reason: ErrorReason.CALLER_NOT_ALLOWED });
    return (error as DeputeError).metadata.roles;
  }
}

const secret: RoleHolder = { kind: "credential" };

describe("a method's roles", () => {
  it.each<[string, RoleHolder, string, readonly RoleName[], string | undefined]>([
    ["a caller without credentials", { kind: "local" }, "local", ["minter"], undefined],
    ["a service of the platform", { kind: "local" }, "local", [], undefined],
    ["a principal without a grant, for users", secret, "bob", ["user"], undefined],
    ["a principal without a grant, for minters", secret, "bob", ["minter", "operator"], "minter,operator"],
    ["a principal without a grant, for services", secret, "bob", [], ""],
    ["a login with the role", { kind: "credential", roles: ["minter"] }, "bob", ["minter"], undefined],
    ["a login without the role", { kind: "credential", roles: ["user"] }, "bob", ["minter"], "minter"],
    ["a login with no role at all", { kind: "credential", roles: [] }, "bob", ["user"], "user"],
    ["a secret, whose file grants the role", secret, "ada", ["auditor"], undefined],
    ["a secret, whose file grants another role", secret, "ada", ["user", "agent"], "user,agent"],
    ["a key, whose file grants the role", { kind: "bound" }, KEY, ["minter"], undefined],
    ["a key, whose file grants another role", { kind: "bound" }, KEY, ["agent"], "agent"],
  ])("admit or refuse %s", (_, caller, principal, names, refused) => {
    expect(missing(names, caller, principal)).toBe(refused);
  });

  it("admit a principal that a setting names, beside the roles of the file", () => {
    expect(missing(["minter"], secret, "ada", ["minter"])).toBeUndefined();
    expect(missing(["minter"], secret, "bob", ["auditor"])).toBe("minter");
  });

  it("come from the option of the method", () => {
    expect(rolesOfMethod(TokenService.method.mintToken)).toEqual({ isForAny: false, names: ["minter"] });
    expect(rolesOfMethod(TokenService.method.verifyToken).isForAny).toBe(true);
    expect(rolesOfMethod(A2AService.method.sendMessage).isForAny).toBe(true);
  });

  it("admit services alone when a method of the platform has no option", () => {
    const { mintToken } = TokenService.method;
    const proto = { ...mintToken.proto, options: undefined };
    const bare = { ...mintToken, input: MintTokenRequestSchema, proto } as typeof mintToken;
    expect(rolesOfMethod(bare)).toEqual({ isForAny: false, names: [] });
  });
});

test("the default roles contain neither minter, auditor nor operator", () => {
  expect(DEFAULT_ROLES).not.toContain("minter");
  expect(DEFAULT_ROLES).not.toContain("auditor");
  expect(DEFAULT_ROLES).not.toContain("operator");
});

describe("the roles of the credentials file", () => {
  it.each<[string, unknown[], RegExp]>([
    [
      "an unknown role",
      [{ principal: "a", sha256: "a".repeat(64), roles: ["root"] }],
      /roles: must be a list of/,
    ],
    [
      "a value that is not a list",
      [{ principal: "a", sha256: "a".repeat(64), roles: "operator" }],
      /roles: must be a list of/,
    ],
    [
      "other roles at a second secret",
      [
        { principal: "a", sha256: "a".repeat(64), roles: ["user"] },
        { principal: "a", sha256: "b".repeat(64) },
      ],
      /credentials\[1\]\.roles: another entry grants the principal other roles/,
    ],
  ])("are refused with %s", (_, entries, message) => {
    expect(() => parseCredentials(JSON.stringify(entries))).toThrow(message);
  });

  it("are absent without a grant", () => {
    expect(credentials.rolesOf("bob")).toBeUndefined();
    expect(noCredentials.rolesOf("bob")).toBeUndefined();
  });
});
