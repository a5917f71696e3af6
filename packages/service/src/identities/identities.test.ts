import { createHmac, type webcrypto } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeputeError, ErrorReason, ManualClock } from "@depute/core";
import { exportSPKI, importJWK } from "jose";
import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { parseCredentials } from "../credentials.ts";
import { createLogger } from "../log.ts";
import { createIssuerKey, startTestIssuer, type TestIssuer } from "../testing/issuer.ts";
import { DevelopmentAuthority } from "../tls/development-certificates.ts";
import { Identities } from "./identities.ts";
import { parseIdentities } from "./identities-file.ts";
import { IDENTITIES_SCHEMA } from "./identities-schema.ts";
import { COOLDOWN_MS, DOCUMENT_TIMEOUT_MS, FRESH_MS, MAX_DOCUMENT_BYTES, STALE_MS } from "./issuer-keys.ts";

const SECRET_PART = "c2VjcmV0";
const authority = await DevelopmentAuthority.create(new Date("2026-01-01"), new Date("2126-01-01"));

let folder: string;
let clock: ManualClock;
let issuer: TestIssuer;
let lines: Record<string, unknown>[];
let opened: Identities[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-identities-"));
  clock = new ManualClock();
  lines = [];
  opened = [];
  issuer = await startTestIssuer(() => clock.now());
});
afterEach(async () => {
  for (const each of opened) each.close();
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

const pathTo = (name: string): string => join(folder, name);

function save(content: unknown): string {
  writeFileSync(pathTo("identities.json"), typeof content === "string" ? content : JSON.stringify(content));
  return pathTo("identities.json");
}

const trusting = (more: object = {}, identities: object[] = [{ subject: "ada", principal: "ada@acme" }]) => ({
  issuers: [{ issuer: issuer.url, audiences: ["depute"], identities, ...more }],
});

function open(content: unknown = trusting()): Identities {
  const log = createLogger({
    level: "debug",
    name: "test",
    destination: { write: (line: string) => void lines.push(JSON.parse(line)) },
  });
  const credentials = parseCredentials(`[{"principal": "${"A".repeat(43)}", "organization": "acme"}]`);
  const identities = Identities.open({ path: save(content), credentials, clock, timers: clock, log });
  opened.push(identities);
  return identities;
}

/** Returns the fault of a refused login token, or the principal of an accepted one. */
async function outcome(identities: Identities, token: string): Promise<string> {
  try {
    return (await identities.verify(token)).principal;
  } catch (error) {
    if (!(error instanceof DeputeError)) throw error;
    expect(error.reason).toBe(ErrorReason.UNAUTHENTICATED);
    expect(`${error.message}${JSON.stringify(error.metadata)}`).not.toContain(token.split(".")[1]);
    return String(error.metadata.fault);
  }
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const seconds = (): number => Math.floor(clock.now() / 1000);

describe("a token of a trusted issuer", () => {
  it("represents the principal, organization and roles of the first matching identity", async () => {
    const identities = open(
      trusting({}, [
        {
          subject: "system:serviceaccount:prod:*",
          claims: { groups: "ops" },
          principal: "ops",
          organization: "acme",
          roles: ["operator"],
        },
        { subject: "system:serviceaccount:prod:worker", principal: "worker" },
        { subject: "*", principal: "acme:{subject}" },
      ]),
    );
    const worker = "system:serviceaccount:prod:worker";
    expect(await identities.verify(await issuer.sign({ sub: worker, groups: ["dev", "ops"] }))).toMatchObject(
      {
        principal: "ops",
        organization: "acme",
        roles: ["operator"],
      },
    );
    expect(await outcome(identities, await issuer.sign({ sub: worker, groups: ["dev"] }))).toBe("worker");
    expect(await outcome(identities, await issuer.sign({ sub: "$& eve" }))).toBe("not_mapped");
    expect(await outcome(identities, await issuer.sign({ sub: "$&" }))).toBe("acme:$&");
    expect(await outcome(identities, await issuer.sign({ sub: "a".repeat(260) }))).toBe("not_mapped");
  });

  it.each(["RS256", "PS256", "ES256", "ES384", "EdDSA"])("is accepted with %s", async (alg) => {
    issuer.keys.push(await createIssuerKey("other", alg));
    expect(await outcome(open(), await issuer.sign({}))).toBe("ada@acme");
  });

  it("is accepted with the types of access tokens, and without a type", async () => {
    const identities = open();
    for (const typ of ["at+jwt", "application/at+jwt", undefined])
      expect(await outcome(identities, await issuer.sign({}, { typ }))).toBe("ada@acme");
  });

  it("costs the issuer one read of its documents", async () => {
    const identities = open();
    const outcomes = await Promise.all(
      [...Array(20)].map(async (_, n) => outcome(identities, await issuer.sign({ n }))),
    );
    expect(new Set(outcomes)).toEqual(new Set(["ada@acme"]));
    expect(issuer.requests.map(({ path }) => path)).toEqual(["/.well-known/openid-configuration", "/keys"]);
  });
});

describe("a refused token", () => {
  it.each<[string, string, (key: TestIssuer["keys"][number]) => Promise<string> | string]>([
    ["expired", "expired", () => issuer.sign({ exp: seconds() - 31 })],
    ["not valid yet", "not_yet_valid", () => issuer.sign({ nbf: seconds() + 31 })],
    ["issued in the future", "not_yet_valid", () => issuer.sign({ iat: seconds() + 31 })],
    ["for another audience", "audience", () => issuer.sign({ aud: "https://other.example" })],
    ["without audience", "claim", () => issuer.sign({ aud: undefined })],
    ["without expiry", "claim", () => issuer.sign({ exp: undefined })],
    ["without subject", "claim", () => issuer.sign({ sub: undefined })],
    ["with an empty subject", "claim", () => issuer.sign({ sub: "" })],
    ["of another issuer", "issuer", () => issuer.sign({ iss: "https://evil.example" })],
    ["without issuer", "issuer", () => issuer.sign({ iss: undefined })],
    ["of an unknown subject", "not_mapped", () => issuer.sign({ sub: "eve" })],
    ["bound to a key", "sender_constrained", () => issuer.sign({ cnf: { jkt: "x" } })],
    ["of an unknown kid", "key", () => issuer.sign({}, { kid: "other" })],
    [
      "of a key with the kid of another",
      "signature",
      async () => issuer.sign({}, {}, await createIssuerKey("first")),
    ],
    ["of another type", "type", () => issuer.sign({}, { typ: "dpop+jwt" })],
    ["for logout", "type", () => issuer.sign({}, { typ: "logout+jwt" })],
    [
      "with alg none",
      "algorithm",
      () =>
        `${part({ alg: "none" })}.${part({ iss: issuer.url, aud: "depute", sub: "ada", exp: seconds() + 9 })}.`,
    ],
    [
      "with HS256 and the public key as its secret",
      "algorithm",
      async ({ jwk }) => {
        const pem = await exportSPKI(
          (await importJWK(jwk, "ES256", { extractable: true })) as webcrypto.CryptoKey,
        );
        const claims = { iss: issuer.url, aud: "depute", sub: "ada", exp: seconds() + 9 };
        const input = `${part({ alg: "HS256", kid: "first" })}.${part(claims)}`;
        return `${input}.${createHmac("sha256", pem).update(input).digest("base64url")}`;
      },
    ],
    [
      "with an algorithm that its issuer may not use",
      "algorithm",
      async () => {
        issuer.keys.push(await createIssuerKey("long", "ES512"));
        return issuer.sign({});
      },
    ],
    [
      "with claims that are not JSON",
      "malformed",
      () => `${part({ alg: "ES256" })}.${SECRET_PART}.${SECRET_PART}`,
    ],
    ["with a header that is not JSON", "malformed", () => `${SECRET_PART}.${part({})}.${SECRET_PART}`],
    ["of 20,000 characters", "malformed", () => issuer.sign({ filler: "a".repeat(20_000) })],
  ])("%s has the fault %s", async (_, fault, token) => {
    const key = issuer.keys[0];
    if (key === undefined) throw new Error("the issuer has no key");
    const signed = await token(key);
    expect(await outcome(open(), signed)).toBe(fault);
    expect(JSON.stringify(lines)).not.toContain(signed);
  });
});

describe("the clock", () => {
  it("ends a verified token at its expiry and the skew, and not before", async () => {
    const identities = open();
    const token = await issuer.sign({ exp: seconds() + 20 });
    expect(await outcome(identities, token)).toBe("ada@acme");
    expect(identities.known(token)).toBeDefined();
    clock.advance(20_000);
    expect(identities.known(token)).toBeUndefined();
    expect(await outcome(identities, token)).toBe("ada@acme");
    clock.advance(30_000);
    expect(await outcome(identities, token)).toBe("expired");
  });

  it("that steps back makes a verified token invalid until its start", async () => {
    const identities = open();
    const token = await issuer.sign({ nbf: seconds() });
    expect(await outcome(identities, token)).toBe("ada@acme");
    clock.set(clock.now() - 120_000);
    expect(await outcome(identities, token)).toBe("not_yet_valid");
  });

  it("that steps forward expires it", async () => {
    const identities = open();
    const token = await issuer.sign({});
    expect(await outcome(identities, token)).toBe("ada@acme");
    clock.set(clock.now() + 400_000);
    expect(await outcome(identities, token)).toBe("expired");
  });
});

describe("keys of an issuer", () => {
  it("rotate: a token of the new key is accepted at once, one of the removed key is refused", async () => {
    const identities = open();
    const old = await issuer.sign({ n: 1 });
    expect(await outcome(identities, old)).toBe("ada@acme");
    clock.advance(COOLDOWN_MS);
    issuer.keys.splice(0, 1, await createIssuerKey("second"));
    expect(await outcome(identities, await issuer.sign({}))).toBe("ada@acme");
    clock.advance(60_000);
    expect(await outcome(identities, old)).toBe("key");
  });

  it("are read once in the cooldown, for any number of unknown kids", async () => {
    const identities = open();
    for (let n = 0; n < 20; n += 1)
      expect(await outcome(identities, await issuer.sign({}, { kid: `k${n}` }))).toBe("key");
    expect(issuer.requests).toHaveLength(2);
    clock.advance(COOLDOWN_MS);
    await outcome(identities, await issuer.sign({}, { kid: "again" }));
    expect(issuer.requests).toHaveLength(4);
  });

  it("are used for an hour while the issuer is unavailable, and no longer", async () => {
    const identities = open();
    expect(await outcome(identities, await issuer.sign({ n: 0 }))).toBe("ada@acme");
    issuer.answers.set(
      "/.well-known/openid-configuration",
      (_, response) => void response.writeHead(503).end(),
    );
    clock.advance(FRESH_MS + 1);
    expect(await outcome(identities, await issuer.sign({ n: 1 }))).toBe("ada@acme");
    clock.advance(STALE_MS - FRESH_MS);
    expect(await outcome(identities, await issuer.sign({ n: 2 }))).toBe("issuer_unavailable");
  });

  it.each<[string, string, Parameters<TestIssuer["answers"]["set"]>[1]]>([
    ["a redirect", "status 302", (_, response) => void response.writeHead(302, { location: "/keys" }).end()],
    ["an error", "status 500", (_, response) => void response.writeHead(500).end()],
    [
      "a huge document",
      "longer than",
      (_, response) => void response.end("x".repeat(MAX_DOCUMENT_BYTES + 1)),
    ],
    ["no JSON", "is not JSON", (_, response) => void response.end("<html>")],
    [
      "another issuer's document",
      "another issuer",
      (_, response) => void response.end('{"issuer": "https://a.example"}'),
    ],
    [
      "keys over http elsewhere",
      "jwks_uri",
      (_, response) =>
        void response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: "http://a.example/keys" })),
    ],
    [
      "keys at an inner address",
      "private address",
      (_, response) =>
        void response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: "https://169.254.169.254/keys" })),
    ],
  ])("are unavailable when discovery answers with %s", async (_, fault, answer) => {
    issuer.answers.set("/.well-known/openid-configuration", answer);
    expect(await outcome(open(), await issuer.sign({}))).toBe("issuer_unavailable");
    expect(lines.at(-1)?.fault).toContain(fault);
  });

  it.each<[string, string, Parameters<TestIssuer["answers"]["set"]>[1]]>([
    ["a redirect", "status 302", (_, response) => void response.writeHead(302, { location: "/k" }).end()],
    ["an error", "status 500", (_, response) => void response.writeHead(500).end()],
    [
      "a huge document",
      "longer than",
      (_, response) => void response.end(`{"keys": [], "x": "${"x".repeat(MAX_DOCUMENT_BYTES)}"}`),
    ],
  ])("are unavailable when their address answers with %s", async (_, fault, answer) => {
    const followed = issuer.requests.length;
    issuer.answers.set("/keys", answer);
    expect(await outcome(open(), await issuer.sign({}))).toBe("issuer_unavailable");
    expect(lines.at(-1)?.fault).toContain(fault);
    expect(issuer.requests.slice(followed).map(({ path }) => path)).not.toContain("/k");
  });

  it.each<[string, string, (response: string[]) => string]>([
    ["more than 64 keys", "64 keys", ([jwk]) => `{"keys": [${[...Array(65)].map(() => jwk).join()}]}`],
    ["a value that is not a list", "not a JSON Web Key Set", () => '{"keys": {}}'],
    ["a symmetric key", "", () => '{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "first"}]}'],
  ])("are not used when the document has %s", async (_, fault, document) => {
    const jwks = issuer.keys.map(({ jwk }) => JSON.stringify(jwk));
    issuer.answers.set("/keys", (_request, response) => void response.end(document(jwks)));
    expect(await outcome(open(), await issuer.sign({}))).toBe(fault === "" ? "key" : "issuer_unavailable");
    if (fault !== "") expect(lines.at(-1)?.fault).toContain(fault);
  });

  it("of a slow issuer time out after 5 seconds", async () => {
    const identities = open();
    const arrived = new Promise<void>((resolve) =>
      issuer.answers.set("/keys", (_, response) => {
        response.writeHead(200).write("{");
        resolve();
      }),
    );
    const refused = outcome(identities, await issuer.sign({}));
    await arrived;
    clock.advance(DOCUMENT_TIMEOUT_MS);
    expect(await refused).toBe("issuer_unavailable");
  });

  it("of Kubernetes come over TLS of its own authority, with the platform's service account token", async () => {
    const cluster = await startTestIssuer(() => clock.now(), await authority.issue({ hosts: ["localhost"] }));
    try {
      writeFileSync(pathTo("ca.crt"), authority.certificate);
      writeFileSync(pathTo("token"), "platform-token\n");
      const entry = {
        issuer: cluster.url,
        audiences: ["depute"],
        caFile: pathTo("ca.crt"),
        tokenFile: pathTo("token"),
        identities: [
          { subject: "system:serviceaccount:prod:worker", principal: "worker", organization: "prod" },
        ],
      };
      const token = await cluster.sign({
        aud: ["depute"],
        sub: "system:serviceaccount:prod:worker",
        "kubernetes.io": { namespace: "prod", serviceaccount: { name: "worker" } },
      });
      expect(await outcome(open({ issuers: [entry] }), token)).toBe("worker");
      expect(cluster.requests.map(({ authorization }) => authorization)).toEqual(
        Array(2).fill("Bearer platform-token"),
      );
      const { caFile: _, ...untrusted } = entry;
      expect(await outcome(open({ issuers: [untrusted] }), token)).toBe("issuer_unavailable");
      expect(JSON.stringify(lines)).not.toContain("platform-token");
    } finally {
      await cluster.stop();
    }
  });
});

describe("client certificates", () => {
  const spiffeId = "spiffe://example.org/worker";

  it("represent the principal of their SPIFFE id, or are refused", () => {
    const identities = open({ certificates: [{ spiffeId, principal: "worker" }] });
    expect(identities.holderOfCertificate(spiffeId)).toMatchObject({ principal: "worker" });
    expect(() => identities.holderOfCertificate("")).toThrow(/no SPIFFE id/);
    expect(() => identities.holderOfCertificate("spiffe://example.org/other")).toThrow(
      /maps it to no principal/,
    );
  });
});

describe("the file", () => {
  it.each<[string, () => unknown, RegExp]>([
    ["no JSON", () => "{", /cannot be used/],
    ["an unknown member", () => ({ issuer: [] }), /additional properties: issuer/],
    [
      "an issuer without audience",
      () => ({ issuers: [{ issuer: issuer.url, identities: [] }] }),
      /audiences/,
    ],
    ["no audience", () => trusting({ audiences: [] }), /\/issuers\/0\/audiences must NOT have fewer than 1/],
    [
      "an issuer over http",
      () => trusting({ issuer: "http://login.example" }),
      /\/issuers\/0\/issuer is not an address/,
    ],
    ["keys over http", () => trusting({ jwksUri: "http://login.example/keys" }), /\/issuers\/0\/jwksUri/],
    ["a symmetric algorithm", () => trusting({ algorithms: ["HS256"] }), /\/issuers\/0\/algorithms\/0/],
    ["an unknown role", () => trusting({}, [{ subject: "a", principal: "a", roles: ["root"] }]), /roles\/0/],
    [
      "the principal local",
      () => trusting({}, [{ subject: "a", principal: "local" }]),
      /identities\/0\/principal/,
    ],
    [
      "a principal that could imitate a key",
      () => trusting({}, [{ subject: "*", principal: "{subject}" }]),
      /principal must match pattern/,
    ],
    [
      "two organizations of a principal",
      () =>
        trusting({}, [
          { subject: "a", principal: "a", organization: "x" },
          { subject: "b", principal: "a", organization: "y" },
        ]),
      /identities\/1\/organization/,
    ],
    [
      "another organization than the credentials file's",
      () => trusting({}, [{ subject: "a", principal: "A".repeat(43), organization: "y" }]),
      /identities\/0\/organization/,
    ],
    [
      "the same SPIFFE id twice",
      () => ({ certificates: Array(2).fill({ spiffeId: "spiffe://a/b", principal: "a" }) }),
      /\/certificates\/1\/spiffeId/,
    ],
    ["an absent authority", () => trusting({ caFile: "/absent/ca.crt" }), /ENOENT/],
  ])("with %s is refused", (_, content, message) => {
    expect(() => open(content())).toThrow(message);
  });

  it("takes effect within 5 seconds after a change, and a removed identity ends", async () => {
    const identities = open();
    const token = await issuer.sign({});
    expect(await outcome(identities, token)).toBe("ada@acme");
    save(trusting({}, [{ subject: "bob", principal: "bob" }]));
    clock.advance(5000);
    expect(await outcome(identities, token)).toBe("not_mapped");
    expect(issuer.requests).toHaveLength(2);
  });

  it("is refused completely while it is invalid: the old one stays, and one log line states it", async () => {
    const identities = open();
    const token = await issuer.sign({});
    save({ ...trusting({}, [{ subject: "bob", principal: "bob" }]), more: 1 });
    clock.advance(20_000);
    expect(await outcome(identities, token)).toBe("ada@acme");
    expect(lines.map(({ msg }) => msg)).toEqual([
      "the changed identities cannot be used; the old identities stay in use",
    ]);
  });

  it("is not read again after the close", () => {
    open().close();
    expect(clock.pending).toBe(0);
  });
});

test("docs/identities.schema.json is the schema of the file", () => {
  const published = readFileSync(new URL("../../../../docs/identities.schema.json", import.meta.url), "utf8");
  expect(JSON.parse(published)).toEqual(IDENTITIES_SCHEMA);
});

test("the examples of docs/identities.md are valid files", () => {
  const page = readFileSync(new URL("../../../../docs/identities.md", import.meta.url), "utf8");
  const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
  expect(examples).toHaveLength(2);
  for (const text of examples) expect(parseIdentities(text).issuers).toHaveLength(1);
});
