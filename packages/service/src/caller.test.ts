import { createHash } from "node:crypto";
import { createContextValues } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import { authenticate } from "./authenticate.ts";
import { type Caller, callerOf } from "./caller.ts";
import { parseCredentials } from "./credentials.ts";
import { HOP } from "./hop-headers.ts";

const KEY = "A".repeat(43);
const digest = (secret: string) => createHash("sha256").update(secret).digest("hex");
const credentials = parseCredentials(
  JSON.stringify([
    { principal: "ada", sha256: digest("s3cret") },
    { principal: "bob", sha256: digest("other") },
    { principal: "eve", sha256: digest("eve's"), organization: "acme" },
    { principal: KEY, organization: "acme" },
  ]),
);
const wire = { htm: "POST", htu: "http://public/a.B/C" };

function call(
  headers: Record<string, string>,
  mode: "open" | "required",
  trusted = false,
): Caller | ErrorReason {
  try {
    return authenticate({ mode, credentials }, { header: new Headers(headers), ...wire, trusted });
  } catch (error) {
    if (error instanceof DeputeError) return error.reason;
    throw error;
  }
}

const local = { kind: "local", principal: "local", ...wire };
const ada = { kind: "credential", principal: "ada", ...wire };
const refused = ErrorReason.UNAUTHENTICATED;

describe("authenticate", () => {
  it.each<[string, Record<string, string>, unknown, unknown]>([
    ["nothing", {}, local, refused],
    ["a Bearer secret", { authorization: "Bearer s3cret" }, ada, ada],
    ["a Bearer secret, in any case of the scheme", { authorization: "bearer  s3cret" }, ada, ada],
    ["an API key", { "x-api-key": "s3cret" }, ada, ada],
    ["a wrong Bearer secret", { authorization: "Bearer wrong" }, refused, refused],
    ["a wrong API key", { "x-api-key": "S3cret" }, refused, refused],
    ["an empty API key", { "x-api-key": "" }, refused, refused],
    ["a digest for a secret", { "x-api-key": digest("s3cret") }, refused, refused],
    ["two kinds at once", { authorization: "Bearer s3cret", "x-api-key": "s3cret" }, refused, refused],
    ["a secret with a proof", { authorization: "Bearer s3cret", dpop: "p" }, refused, refused],
    ["an API key with a proof", { "x-api-key": "s3cret", dpop: "p" }, refused, refused],
    ["another scheme", { authorization: "Basic YTpi" }, refused, refused],
    ["a scheme without credentials", { authorization: "Bearer" }, refused, refused],
    ["an empty header", { authorization: "" }, refused, refused],
    ["three words", { authorization: "Bearer s3cret more" }, refused, refused],
    [
      "a token with its proof",
      { authorization: "DPoP tok", dpop: "prf" },
      { kind: "bound", principal: "", token: "tok", proof: "prf", ...wire },
      { kind: "bound", principal: "", token: "tok", proof: "prf", ...wire },
    ],
    [
      "a token alone",
      { authorization: "DPoP tok" },
      { kind: "bound", principal: "", token: "tok", ...wire },
      { kind: "bound", principal: "", token: "tok", ...wire },
    ],
    [
      "a proof alone",
      { dpop: "prf" },
      { kind: "bound", principal: "", proof: "prf", ...wire },
      { kind: "bound", principal: "", proof: "prf", ...wire },
    ],
  ])("%s", (_, headers, open, required) => {
    expect(call(headers, "open")).toEqual(open);
    expect(call(headers, "required")).toEqual(required);
  });

  const hop = { [HOP.htm]: "GET", [HOP.htu]: "http://elsewhere/x", [HOP.origin]: "service" };

  it("ignores a stranger's hop headers", () => {
    expect(call(hop, "required")).toBe(refused);
    expect(call({ ...hop, dpop: "p" }, "required")).toMatchObject(wire);
  });

  it("accepts the hop headers of the platform's own processes", () => {
    const stated = { htm: "GET", htu: "http://elsewhere/x" };
    expect(call(hop, "required", true)).toEqual({ kind: "local", principal: "local", ...stated });
    expect(call({ ...hop, dpop: "p" }, "required", true)).toMatchObject({ kind: "bound", ...stated });
    expect(call({ ...hop, "x-api-key": "wrong" }, "required", true)).toBe(refused);
  });

  it.each([
    ["a hop of the platform", true, "acme & söhne"],
    ["a stranger", false, undefined],
  ])("takes the organization of a service's own call from %s", (_, trusted, organization) => {
    const header = { ...hop, [HOP.organization]: encodeURIComponent("acme & söhne") };
    expect((call(header, "open", trusted) as Caller).organization).toBe(organization);
  });

  it("refuses a hop whose organization is not percent-encoded", () => {
    expect(call({ ...hop, [HOP.organization]: "%" }, "required", true)).toBe(refused);
  });

  it("does not take the organization of a caller with credentials from a hop", () => {
    const header = { ...hop, "x-api-key": "s3cret", [HOP.organization]: "globex" };
    expect(call(header, "required", true)).not.toHaveProperty("organization");
  });

  it("sets the organization of a configured credential", () => {
    expect(call({ "x-api-key": "eve's" }, "required")).toMatchObject({
      principal: "eve",
      organization: "acme",
    });
  });

  it("applies the authentication mode to a forwarded caller without credentials", () => {
    expect(call({}, "required", true)).toBe(refused);
  });
});

describe("callerOf", () => {
  it("refuses a call without an authenticated caller", () => {
    expect(() => callerOf({ values: createContextValues() })).toThrow(DeputeError);
  });
});

describe("credentials", () => {
  it.each([
    ["{}", "must be a JSON array"],
    [`{"s3cret`, "credentials: must be a JSON array, but the text is not JSON"],
    ["[null]", "credentials[0].principal"],
    [`[{"principal":"","sha256":"${digest("a")}"}]`, "credentials[0].principal"],
    [`[{"principal":"a","sha256":"${digest("a").toUpperCase()}"}]`, "credentials[0].sha256"],
    [`[{"principal":"a","sha256":"s3cret"}]`, "credentials[0].sha256"],
    [
      JSON.stringify([
        { principal: "a", sha256: digest("a") },
        { principal: "b", sha256: digest("a") },
      ]),
      "credentials[1].sha256: another entry has the same secret",
    ],
    [`[{"principal":"a","organization":"acme"}]`, "credentials[0].sha256"],
    [`[{"principal":"${KEY}"}]`, "credentials[0].sha256"],
    [`[{"principal":"${KEY}","organization":7}]`, "credentials[0].organization"],
    [`[{"principal":"${KEY}","organization":"${"a".repeat(129)}"}]`, "credentials[0].organization"],
    [
      JSON.stringify([
        { principal: KEY, organization: "acme" },
        { principal: KEY, sha256: digest("a"), organization: "globex" },
      ]),
      "credentials[1].organization: another entry names another organization",
    ],
  ])("refuse %s", (json, message) => {
    expect(() => parseCredentials(json)).toThrow(message);
    expect(() => parseCredentials(json)).not.toThrow(/s3cret/);
  });

  it.each([
    ["a secret's principal", "eve", "acme"],
    ["a key without a secret", KEY, "acme"],
    ["a principal without organization", "ada", ""],
    ["an unknown principal", "mallory", ""],
  ])("name the organization of %s", (_, principal, organization) => {
    expect(credentials.organizationOf(principal)).toBe(organization);
  });
});
