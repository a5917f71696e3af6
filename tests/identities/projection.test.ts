import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type Depute } from "@depute/client";
import type { Attenuation, SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { createProof, generateKeypair, type Keypair, thumbprint } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { startTestIssuer, type TestIssuer } from "@depute/service/testing";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Json, json, startPlatform, type TestPlatform } from "../gateway/platform.ts";

const READ = { namespace: "docs", action: "read", resource: "/team/**" };
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const DCT = "urn:depute:oauth:token-type:dct";
const JWT = "urn:ietf:params:oauth:token-type:jwt";
const SHOP = "https://shop.example";

let folder: string;
let issuer: TestIssuer;
let platform: TestPlatform;
const [ada, agent, helper] = [generateKeypair(engine), generateKeypair(engine), generateKeypair(engine)];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-projection-"));
  issuer = await startTestIssuer(Date.now);
  const mint = { capabilities: [READ], maxBudgetMicrocents: 1000, maxChainDepth: 2 };
  const identities = [{ subject: "ada", principal: "ada@acme", organization: "acme", mint }];
  const file = join(folder, "identities.json");
  writeFileSync(
    file,
    JSON.stringify({ issuers: [{ issuer: issuer.url, audiences: ["depute"], identities }] }),
  );
  platform = await startPlatform(["--auth", "required", "--identities-file", file]);
}, 60_000);
afterAll(async () => {
  await platform.stop();
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

function requirePresent<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

/** Sends a token request with a proof of a key. */
async function request(parameters: Record<string, string>, key: Keypair, token?: string): Promise<Json> {
  const htu = `${platform.url}/oauth/token`;
  const dpop = createProof(engine, key, { htm: "POST", htu, ...(token !== undefined && { token }) });
  const body = new URLSearchParams({ grant_type: GRANT, ...parameters });
  const answer = await fetch(htu, { method: "POST", headers: { dpop }, body });
  return { status: answer.status, ...((await answer.json()) as object) };
}

/** Exchanges ada's login for a token of ada's key. */
async function exchanged(more: Record<string, string> = {}): Promise<SerializedDCT["token"]> {
  const subject_token = await issuer.sign({});
  const answer = await request({ subject_token, subject_token_type: JWT, ...more }, ada);
  expect(answer).toMatchObject({ status: 200 });
  return answer.access_token;
}

const project = (token: string, key: Keypair, more: Record<string, string> = {}, proven = token) =>
  request({ subject_token: token, subject_token_type: DCT, audience: SHOP, ...more }, key, proven);

async function attenuated(
  text: string,
  from: Keypair,
  to: Keypair,
  more: Partial<Attenuation> = {},
  binding = {},
) {
  const depute: Depute = connect(platform.url, { key: from });
  const { tokens } = depute.services;
  const token = { token: text, format: "delegateos-sjt-v1" };
  const draft = { delegatee: to.principal.id, ...more };
  const { attenuation, digest } = await tokens.prepareAttenuation({ token, attenuation: draft as never });
  const signature = engine.sign(digest, from.privateKey);
  const answer = await tokens.attenuateToken({
    ...{ token, attenuation: requirePresent(attenuation), signature, binding },
  });
  depute.close();
  return { text: requirePresent(answer.token).token, revocationId: answer.revocationId };
}

/** Verifies a token like a resource server that knows only the platform's metadata. */
async function atResourceServer(token: string, audience = SHOP) {
  const metadata = await json(fetch(`${platform.url}/.well-known/oauth-authorization-server`));
  expect(metadata).toMatchObject({ issuer: platform.url, token_endpoint: `${platform.url}/oauth/token` });
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));
  return jwtVerify(token, keys, { issuer: metadata.issuer, audience, algorithms: ["ES256"], typ: "at+jwt" });
}

describe("a projected token", () => {
  it("names the person, all actors and the holder's key to a server that supports OAuth alone", async () => {
    const root = await exchanged();
    const forAgent = await attenuated(root, ada, agent);
    const { text } = await attenuated(forAgent.text, agent, helper);
    const answer = await project(text, helper);
    expect(answer).toMatchObject({
      status: 200,
      token_type: "DPoP",
      issued_token_type: JWT,
      expires_in: 300,
    });
    const { payload } = await atResourceServer(answer.access_token);
    expect(payload).toMatchObject({
      sub: "ada@acme",
      sub_id: { format: "iss_sub", iss: issuer.url, sub: "ada" },
      client_id: helper.principal.id,
      act: {
        sub: helper.principal.id,
        act: { sub: agent.principal.id, act: { sub: ada.principal.id } },
      },
      cnf: { jkt: thumbprint(engine, helper.principal.id) },
      authorization_details: [{ type: "delegateos_capability", ...READ }],
    });
    await expect(atResourceServer(answer.access_token, "https://other.example")).rejects.toThrow("aud");
  });

  it("ends with its token, and with the requested lifetime", async () => {
    const root = await exchanged({ requested_lifetime: "60" });
    expect((await project(root, ada)).expires_in).toBeLessThanOrEqual(60);
    expect(await project(root, ada, { requested_lifetime: "20" })).toMatchObject({ expires_in: 20 });
    expect(await project(root, ada, { requested_lifetime: "301" })).toMatchObject({
      error: "invalid_request",
    });
  });

  it("is not a login at the platform itself", async () => {
    const { access_token: token } = await project(await exchanged(), ada);
    const answer = await platform.post(
      "/depute.tokens.v1.TokenService/GetIssuer",
      {},
      {
        authorization: `Bearer ${token}`,
      },
    );
    expect(answer.status).toBe(401);
  });
});

describe("the platform refuses a projection", () => {
  it("for another key, or a proof for another token", async () => {
    const [root, other] = [await exchanged(), await exchanged({ requested_lifetime: "60" })];
    for (const answer of [await project(root, agent), await project(root, ada, {}, other)]) {
      expect(answer).toMatchObject({ status: 400, error: "invalid_dpop_proof" });
    }
  });

  it("of a revoked or changed token", async () => {
    const { text, revocationId } = await attenuated(await exchanged(), ada, agent);
    const depute = connect(platform.url, { key: ada });
    await depute.revoke({ token: text, revocationId }, ada);
    depute.close();
    expect(await project(text, agent)).toMatchObject({
      ...{ status: 400, error: "invalid_request", error_description: expect.stringContaining("revoked") },
    });
    expect(await project("e30", agent)).toMatchObject({ status: 400 });
  });

  it("beyond the bindings of its blocks", async () => {
    const root = await exchanged();
    const bound = await attenuated(root, ada, agent, {}, { audiences: [SHOP] });
    expect(await project(bound.text, agent)).toMatchObject({ status: 200 });
    expect(await project(bound.text, agent, { audience: "https://other.example" })).toMatchObject({
      status: 400,
    });
    const once = await attenuated(root, ada, helper, {}, { singleUse: true });
    expect(await project(once.text, helper)).toMatchObject({ status: 400, error: "invalid_request" });
  });

  it("without exactly one resource server", async () => {
    const root = await exchanged();
    for (const more of [{ audience: "" }, { resource: "https://other.example" }]) {
      expect(await project(root, ada, more)).toMatchObject({ status: 400, error: "invalid_target" });
    }
  });
});
