import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@depute/client";
import { createProof, generateKeypair, type Keypair, parseToken, thumbprint } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { startTestIssuer, type TestIssuer } from "@depute/service/testing";
import { exportSPKI, importJWK } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Json, startApart, startPlatform } from "../gateway/platform.ts";

const READ = { namespace: "docs", action: "read", resource: "/team/**" };
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT = "urn:ietf:params:oauth:token-type:jwt";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

let folder: string;
let issuer: TestIssuer;
let flags: string[];
const [holder, helper] = [generateKeypair(engine), generateKeypair(engine)];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-exchange-"));
  issuer = await startTestIssuer(Date.now);
  const mint = {
    capabilities: [READ],
    maxBudgetMicrocents: 1000,
    maxLifetimeSeconds: 600,
    maxChainDepth: 2,
  };
  const identities = [
    { subject: "ada", principal: "ada@acme", organization: "acme", mint },
    { subject: "bob", principal: "bob@acme", organization: "acme" },
    { subject: "root", principal: "root@acme", organization: "acme", roles: ["minter"] },
  ];
  const file = join(folder, "identities.json");
  writeFileSync(
    file,
    JSON.stringify({ issuers: [{ issuer: issuer.url, audiences: ["depute"], identities }] }),
  );
  flags = ["--auth", "required", "--identities-file", file];
});
afterAll(async () => {
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe.each([
  ["one process", startPlatform],
  ["a gateway apart from the services", startApart],
])("the exchange of a login, at %s", (_, start) => {
  let platform: Awaited<ReturnType<typeof startApart | typeof startPlatform>>;
  beforeAll(async () => {
    platform = await start(flags);
  }, 60_000);
  afterAll(() => platform.stop());

  const target = () => `${platform.url}/oauth/token`;
  const proof = (key: Keypair = holder, claims: object = {}) =>
    createProof(engine, key, { htm: "POST", htu: target(), ...claims });

  /** Sends a token request. A parameter that is undefined is left out. */
  async function exchange(
    parameters: Record<string, string | undefined> = {},
    dpop: string | undefined = proof(),
  ): Promise<Json> {
    const all = { grant_type: GRANT, subject_token_type: JWT, ...parameters };
    const form = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined);
    const subject = parameters.subject_token ?? (await issuer.sign({}));
    const answer = await fetch(target(), {
      method: "POST",
      headers: dpop === undefined ? {} : { dpop },
      body: new URLSearchParams([
        ...form.filter(([name]) => name !== "subject_token"),
        ["subject_token", subject],
      ]),
    });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    return { status: answer.status, ...((await answer.json()) as object) };
  }

  it("gives the holder of the proven key a token within the identity's limits", async () => {
    const answer = await exchange();
    expect(answer).toMatchObject({
      ...{ status: 200, token_type: "DPoP", expires_in: 600 },
      issued_token_type: "urn:depute:oauth:token-type:dct",
      authorization_details: [{ type: "delegateos_capability", ...READ }],
    });
    const parsed = parseToken(answer.access_token);
    expect(parsed).toMatchObject({
      ok: true,
      token: {
        authority: {
          ...{ delegatee: holder.principal.id, capabilities: [READ] },
          ...{ maxBudgetMicrocents: 1000, maxChainDepth: 2 },
        },
      },
    });
  });

  it("records the person behind the root block, and shows it down the chain", async () => {
    const { access_token: text, delegation_id: delegationId } = await exchange({ requested_lifetime: "60" });
    const depute = connect(platform.url, { key: holder });
    const { tokens, delegations } = depute.services;
    const token = { token: text, format: "delegateos-sjt-v1" };
    const { attenuation, digest } = await tokens.prepareAttenuation({
      ...{ token, attenuation: { delegatee: helper.principal.id } },
    });
    if (attenuation === undefined) throw new Error("nothing was prepared");
    const narrowed = await tokens.attenuateToken({
      ...{ token, attenuation, signature: engine.sign(digest, holder.privateKey) },
    });
    const onBehalfOf = { issuer: issuer.url, subject: "ada", principal: "ada@acme" };
    const { delegations: chain } = await delegations.getDelegationChain({
      delegationId: narrowed.delegationId,
    });
    expect(chain).toMatchObject([
      { id: delegationId, organization: "acme", onBehalfOf },
      { id: narrowed.delegationId, organization: "acme", onBehalfOf },
    ]);
    const { explanation } = await delegations.explainAuthority({
      subject: { case: "delegation", value: { delegationId: narrowed.delegationId } },
    });
    expect(explanation).toMatchObject({ onBehalfOf, principal: helper.principal.id, validNow: true });
    depute.close();
  });

  it("accepts identity assertions, and tokens that are bound to the proven key", async () => {
    const assertion = await issuer.sign(
      { client_id: "agent", jti: crypto.randomUUID() },
      { typ: "oauth-id-jag+jwt" },
    );
    const asserted = { subject_token: assertion, subject_token_type: ID_JAG };
    expect(await exchange({ ...asserted, scope: "write:everything" })).toMatchObject({ status: 400 });
    const answers = await Promise.all([exchange(asserted), exchange(asserted), exchange(asserted)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
    expect(await exchange(asserted)).toMatchObject({
      ...{ status: 400, error: "invalid_request", reason: "UNAUTHENTICATED" },
      error_description: expect.stringContaining("used before"),
    });
    const bound = await issuer.sign({ cnf: { jkt: thumbprint(engine, holder.principal.id) } });
    expect(await exchange({ subject_token: bound })).toMatchObject({ status: 200 });
    expect(await exchange({ subject_token: bound }, proof(helper))).toMatchObject({
      ...{ status: 400, error: "invalid_request" },
      error_description: expect.stringContaining("another key"),
    });
  });

  it("reduces a request to the identity's limits, and refuses one above them", async () => {
    const detail = (resource: string) =>
      JSON.stringify([{ type: "delegateos_capability", namespace: "docs", action: "read", resource }]);
    expect(await exchange({ authorization_details: detail("/team/plan") })).toMatchObject({
      ...{ status: 200, authorization_details: [{ resource: "/team/plan" }] },
    });
    for (const more of [
      { authorization_details: detail("/other/**") },
      { max_budget_microcents: "1001" },
      { requested_lifetime: "601" },
      { max_chain_depth: "3" },
    ]) {
      expect(await exchange(more)).toMatchObject({ status: 400, error: "invalid_scope" });
    }
  });

  it("counts a proof once, and for this address alone", async () => {
    const once = proof();
    expect(await exchange({}, once)).toMatchObject({ status: 200 });
    for (const dpop of [
      once,
      proof(holder, { htu: `${platform.url}/other` }),
      proof(holder, { now: 0 }),
      "x",
    ]) {
      expect(await exchange({}, dpop)).toMatchObject({ status: 400, error: "invalid_dpop_proof" });
    }
  });

  it("refuses requests without a proof, or of another form", async () => {
    const unproven = new URLSearchParams({ grant_type: GRANT, subject_token_type: JWT, subject_token: "x" });
    expect(await (await fetch(target(), { method: "POST", body: unproven })).json()).toMatchObject({
      error: "invalid_dpop_proof",
    });
    const twice = new URLSearchParams([
      ["grant_type", GRANT],
      ["grant_type", GRANT],
    ]);
    expect(await (await fetch(target(), { method: "POST", body: twice })).json()).toMatchObject({
      error: "invalid_request",
    });
    for (const [parameters, error] of [
      [{ grant_type: "password" }, "unsupported_grant_type"],
      [{ subject_token_type: "other" }, "invalid_request"],
      [{ requested_token_type: "other" }, "invalid_request"],
      [{ scope: "all" }, "invalid_scope"],
      [{ actor_token: "x" }, "invalid_request"],
      [{ authorization_details: "[{}]" }, "invalid_request"],
      [{ max_chain_depth: "-1" }, "invalid_request"],
      [{ contract_id: "x" }, "invalid_request"],
    ] as const) {
      expect(await exchange(parameters)).toMatchObject({ status: 400, error });
    }
  });

  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const forged = (alg: string, signature: (text: string) => string) => {
    const seconds = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer.url, aud: "depute", sub: "ada", iat: seconds, exp: seconds + 60 };
    const text = `${part({ alg, kid: "first", typ: "JWT" })}.${part(claims)}`;
    return `${text}.${signature(text)}`;
  };
  const refused: Record<string, () => Promise<string> | string> = {
    "another audience": () => issuer.sign({ aud: "other" }),
    "an expired token": () => issuer.sign({ exp: Math.floor(Date.now() / 1000) - 60 }),
    "another issuer": () => issuer.sign({ iss: "https://other.example" }),
    "an unknown subject": () => issuer.sign({ sub: "mallory" }),
    "alg none": () => forged("none", () => ""),
    "HS256 with the public key": async () => {
      const spki = await exportSPKI(
        (await importJWK(issuer.keys[0]?.jwk ?? {}, "ES256", { extractable: true })) as never,
      );
      return forged("HS256", (text) => createHmac("sha256", spki).update(text).digest("base64url"));
    },
    "an assertion as access token": () => issuer.sign({}, { typ: "oauth-id-jag+jwt" }),
    "no token": () => "x",
  };
  it.each(Object.keys(refused))("refuses %s", async (name) => {
    const subject_token = (await refused[name]?.()) ?? "";
    const answer = await exchange({ subject_token });
    expect(answer).toMatchObject({ status: 400, error: "invalid_request" });
    expect(JSON.stringify(answer)).not.toContain(subject_token.split(".")[1] ?? "?");
  });

  it("gives an identity with the role minter the requested token, without limits", async () => {
    const authorization_details = JSON.stringify([
      { type: "delegateos_capability", ...READ, resource: "/**" },
    ]);
    const request = async (more: object) =>
      exchange({ subject_token: await issuer.sign({ sub: "root" }), authorization_details, ...more });
    expect(await request({ max_budget_microcents: "5000" })).toMatchObject({ status: 200, expires_in: 3600 });
    expect(await request({})).toMatchObject({ status: 400, error: "invalid_request" });
  });

  it("refuses an identity without the permission to mint", async () => {
    const subject_token = await issuer.sign({ sub: "bob" });
    expect(await exchange({ subject_token })).toMatchObject({ status: 400, error: "unauthorized_client" });
  });
});
