import { createPublicKey, verify } from "node:crypto";
import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentCardSigner } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { canonicalBytes, encodeHex } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { signedCard } from "../testing/owner-card.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { signer } from "../testing/statement.ts";

let platform: Platform;
let requests = 0;
const register = (parts: Record<string, unknown> = {}) =>
  platform.agents.registerAgent(
    { requestId: `r${++requests}`, agent: { id: "a:b", principal: ALICE, ...parts } },
    as(ALICE),
  );

beforeEach(async () => {
  platform = await startPlatform();
  await platform.agents.registerAgent({ requestId: "base", agent: { id: "a", principal: ALICE } }, as(ALICE));
});
afterEach(() => platform.stop());

async function read(caller = BOB) {
  const answer = await platform.agents.getAgentCard({ agentId: "a:b" }, as(caller));
  return { ...answer, json: JSON.parse(new TextDecoder().decode(answer.card)) };
}

describe("GetAgentCard", () => {
  it("contains the agent's identity, capabilities and delegation profile", async () => {
    await register({
      displayName: "Analyst",
      description: "Analyses.",
      version: "1.2.0",
      organization: "acme",
      tags: ["fast"],
      card: { agentId: "agent://acme.com/x/a", name: "A", endpoints: { asp: "https://acme.com/asp" } },
      delegation: {
        revocationEndpoint: "https://acme.com/revocations",
        delegationPolicy: {
          acceptsDelegation: true,
          maxChainDepth: 3n,
          requiredTrustScore: 0.5,
          allowedNamespaces: ["data"],
          costPerTaskMicrocents: 500n,
        },
      },
    });
    const capabilities = [capability("sum", { cat: "math", desc: "Adds." })];
    await platform.agents.publishCapabilities({ requestId: "p", agentId: "a:b", capabilities }, as(ALICE));
    const { signatures, ...card } = (await read()).json;
    expect(signatures).toHaveLength(1);
    expect(card).toEqual({
      protocolVersion: "0.3.0",
      name: "Analyst",
      description: "Analyses.",
      url: `${platform.publicUrl}/nekte/a%3Ab`,
      preferredTransport: "NEKTE",
      additionalInterfaces: [{ url: "https://acme.com/asp", transport: "ASP" }],
      version: "1.2.0",
      provider: { organization: "acme", url: platform.publicUrl },
      capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: true },
      defaultInputModes: ["application/json"],
      defaultOutputModes: ["application/json"],
      skills: [{ id: "sum", name: "sum", description: "Adds.", tags: ["math", "fast"] }],
      delegateos: {
        principal: ALICE,
        revocationEndpoint: "https://acme.com/revocations",
        delegationPolicy: {
          acceptsDelegation: true,
          maxChainDepth: 3,
          requiredTrustScore: 0.5,
          allowedNamespaces: ["data"],
          costPerTaskMicrocents: 500,
        },
      },
    });
  });

  it("is signed over its canonical form by a permanent key", async () => {
    await register();
    const { json, signingKey, digest } = await read();
    const { signatures, ...card } = json;
    const [{ protected: header, signature }] = signatures;
    expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({
      alg: "EdDSA",
      kid: signingKey?.kid,
      typ: "JOSE",
    });
    const payload = canonicalBytes(card);
    const message = Buffer.from(`${header}.${Buffer.from(payload).toString("base64url")}`);
    const jwk = { kty: "OKP", crv: "Ed25519", x: signingKey?.x ?? "" };
    const key = createPublicKey({ key: jwk, format: "jwk" });
    expect(verify(null, message, key, Buffer.from(signature, "base64url"))).toBe(true);
    expect(verify(null, Buffer.from(`${message}A`), key, Buffer.from(signature, "base64url"))).toBe(false);
    expect(encodeHex(digest)).toBe(sha256Hex(payload));
    await platform.restart();
    expect((await read()).signingKey?.x).toBe(signingKey?.x);
  });

  it("has a new digest only if the card changes", async () => {
    await register();
    const { digest } = await read();
    await platform.agents.heartbeatAgent({ agentId: "a:b" }, as(ALICE));
    expect((await read()).digest).toEqual(digest);
    await register({ description: "new" });
    expect((await read()).digest).not.toEqual(digest);
  });

  it("is not found for an invisible or removed agent", async () => {
    await platform.agents.registerAgent(
      { requestId: "hide", agent: { id: "a", principal: ALICE, visibility: AgentVisibility.NAMED } },
      as(ALICE),
    );
    await register();
    expect(await refusal(read())).toMatchObject({ reason: "AGENT_NOT_FOUND" });
    expect((await read(ALICE)).json.name).toBe("a:b");
    await platform.agents.deregisterAgent({ agentId: "a:b" }, as(ALICE));
    expect(await refusal(read(ALICE))).toMatchObject({ reason: "AGENT_NOT_FOUND" });
  });
});

describe("a card with the owner's signature", () => {
  const owner = signer();
  const { principal } = owner;
  const card = { name: "Own", url: "https://acme.com/a2a", version: "3", delegateos: { principal } };
  const registerOwn = (text: string, parts: Record<string, unknown> = {}) =>
    platform.agents.registerAgent({
      requestId: `r${++requests}`,
      agent: { id: "own", principal, signedCard: new TextEncoder().encode(text), ...parts },
    });
  const readOwn = (id = "own") =>
    platform.agents.getAgentCard({ agentId: id, signer: AgentCardSigner.OWNER }, as(BOB));

  it("is returned beside the platform's, and is part of the version", async () => {
    const { agent } = await registerOwn(signedCard(owner, card));
    const ownerCopy = await readOwn();
    expect(JSON.parse(new TextDecoder().decode(ownerCopy.card))).toMatchObject(card);
    expect(ownerCopy.signingKey?.x).toBe(principal);
    expect(encodeHex(ownerCopy.digest)).toBe(sha256Hex(canonicalBytes(card)));
    expect(ownerCopy.updateTime).toEqual(agent?.updateTime);
    const platforms = await platform.agents.getAgentCard({ agentId: "own" }, as(BOB));
    expect(JSON.parse(new TextDecoder().decode(platforms.card)).name).toBe("own");
    expect(platforms.signingKey?.x).not.toBe(principal);
    const again = await registerOwn(signedCard(owner, { ...card, version: "4" }));
    expect([agent?.revision, again.agent?.revision]).toEqual([1n, 2n]);
    const name = { case: "revision", value: 1n } as const;
    const { version } = await platform.agents.getAgentVersion({ agentId: "own", name });
    expect(JSON.parse(new TextDecoder().decode(version?.agent?.signedCard)).version).toBe("3");
  });

  it("is not found without a signed card, nor for an instance", async () => {
    await registerOwn(signedCard(owner, card));
    await platform.agents.registerAgent({ requestId: "i", agent: { id: "own:1", principal } });
    for (const id of ["a", "own:1"]) {
      expect(await refusal(readOwn(id))).toMatchObject({
        reason: "AGENT_CARD_NOT_FOUND",
        metadata: { agent: id },
      });
    }
  });

  it("is refused if forged, and leaves the previous one", async () => {
    await registerOwn(signedCard(owner, card));
    expect(await refusal(registerOwn(signedCard(signer(), card), { description: "new" }))).toMatchObject({
      reason: "SIGNATURE_INVALID",
      fields: ["agent.signed_card"],
    });
    expect(await refusal(registerOwn("{"))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["agent.signed_card"],
    });
    const { agent } = await platform.agents.getAgent({ agentId: "own" });
    expect(agent).toMatchObject({ revision: 1n, description: "" });
  });

  it("is refused with an address outside the configured origins", async () => {
    await platform.stop();
    platform = await startPlatform(["--agent-endpoint-origins", "https://acme.com"]);
    await registerOwn(signedCard(owner, card));
    const elsewhere = { ...card, additionalInterfaces: [{ url: "https://evil.example", transport: "X" }] };
    expect(await refusal(registerOwn(signedCard(owner, elsewhere)))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["agent.signed_card"],
    });
  });
});
