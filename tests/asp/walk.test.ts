import { afterAll, beforeAll, expect, test } from "vitest";
import { faultOfChain, faultOfSeal, type Keys, type Sealed } from "./foreign-seal.ts";
import { type Platform, startPlatform } from "./platform.ts";
import { type Document, Stranger } from "./stranger.ts";

/**
 * In this file three companies hold an ASP session on the platform, from the invitation to a sealed transcript.
 * Their programs share no code with the platform: they use only fetch, SHA-256 and Ed25519 of Node.js.
 */

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

test("three companies negotiate, bring in an auditor, commit, fulfil, close, and verify the seal", async () => {
  const { url } = platform;
  const alpha = new Stranger(url, "acme-alpha", "agent://acme.com/procurement/alpha");
  const beta = new Stranger(url, "soft-beta", "agent://softwarecorp.io/sales/beta");
  const gamma = new Stranger(url, "verify-gamma", "agent://verifyco.com/compliance/gamma");
  for (const one of [alpha, beta, gamma]) expect((await one.register()).status).toBe(200);
  const { body: found } = await alpha.get("/v1/asp/discover?capability=walk");
  expect((found.agents as Document[]).map(({ agentId }) => agentId)).toContain(beta.uri);

  const { body: opened } = await alpha.invite(beta.uri);
  const sessionId = String(opened.sessionId);
  const states: unknown[] = [opened.state];
  const say = async (who: Stranger, performative: string, body: Document) => {
    const answer = await who.say(sessionId, performative, body);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
    states.push(answer.body.state);
  };
  await say(beta, "ACCEPT", { referenceId: "inv" });
  for (const one of [alpha, beta]) {
    const data = { agentId: one.uri, name: one.id, signingPublicKey: one.jwk };
    await say(one, "INFORM", { informType: "identity", data });
  }
  const terms = { seats: 100, pricePerSeatPerMonth: 50.5, note: "caf\u00e9" };
  await say(alpha, "PROPOSE", { proposalId: "p", type: "terms", subject: "Seats", terms });
  await say(beta, "DELEGATE", {
    delegationId: "d",
    targetAgent: gamma.uri,
    scope: "Check.",
    authority: "advisory",
  });
  await say(gamma, "ACCEPT", { referenceId: "d" });
  await say(gamma, "INFORM", {
    informType: "result",
    references: ["d"],
    data: { soc2: { registryConfirmed: true } },
  });
  await say(beta, "ACCEPT", { referenceId: "p" });
  const obligations = {
    buyer: { party: alpha.uri, action: "Pay." },
    vendor: { party: beta.uri, action: "Provision." },
  };
  const escrow = { amount: 5000, currency: "USD", releaseCondition: "provisioned" };
  await say(alpha, "COMMIT", {
    commitmentId: "c",
    type: "agreement",
    subject: "Seats",
    terms,
    obligations,
    escrow,
  });
  await say(beta, "ACCEPT", { referenceId: "c" });
  await say(beta, "INFORM", { informType: "result", references: ["c"] });
  await say(alpha, "ACCEPT", { referenceId: "c" });
  await say(alpha, "CLOSE", { outcome: "fulfilled", ratings: [{ agentId: beta.uri, stars: 5 }] });
  await say(beta, "CLOSE", { outcome: "fulfilled", ratings: [{ agentId: alpha.uri, stars: 4 }] });
  expect([...new Set(states)]).toEqual([
    "INVITED",
    "INTRODUCED",
    "CONVERSING",
    "AGREEING",
    "EXECUTING",
    "CLOSED",
  ]);
  expect((await alpha.say(sessionId, "OBSERVE", {})).body.error).toMatchObject({
    metadata: { code: "session_ended" },
  });

  const transcript = (await beta.get(`/v1/asp/sessions/${sessionId}/transcript`)).body as unknown as Sealed;
  const keys = (await beta.get("/v1/asp/keys")).body as unknown as Keys;
  expect([faultOfChain(transcript), faultOfSeal(transcript, keys)]).toEqual([undefined, undefined]);
  const cut = { ...transcript, messages: transcript.messages.slice(0, -1) };
  const { envelope = {} } = cut.messages.at(-1) ?? {};
  const { hash: lastHash = "" } = (envelope as Document).integrity as Document;
  expect(faultOfChain({ ...cut, lastHash })).toBeUndefined();
  expect(faultOfSeal({ ...cut, lastHash } as Sealed, keys)).toBe("another record");
  const late = { ...transcript, exportedAt: "2099-01-01T00:00:00.000Z" };
  expect(faultOfSeal(late as Sealed, keys)).toBe("not signed by the platform");
});
