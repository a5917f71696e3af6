import { randomBytes } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { documentOf, Party } from "./party.ts";

/** The documents that a run of the negotiation produces. */
export interface Negotiated {
  readonly sessionId: string;
  /** The session's transcript as exported by the platform. */
  readonly transcript: JsonObject;
  /** The platform's keys, which verify the transcript's seal. */
  readonly keys: JsonObject;
}

/**
 * Lets two agents agree on a licence over ASP, from the invitation to the end of the session.
 *
 * @param url the platform's address
 * @param tell receives each message: the sender, the text, and the session's state after it
 */
export async function negotiate(
  url: string,
  tell: (who: string, performative: string, state: string) => void,
): Promise<Negotiated> {
  // Each run uses new agents, because the platform binds an agent's id to its key.
  const run = randomBytes(4).toString("hex");
  const buyer = new Party(url, `agent://buyer-${run}.example/demo/buyer-${run}`);
  const vendor = new Party(url, `agent://vendor-${run}.example/demo/vendor-${run}`);
  for (const party of [buyer, vendor]) await party.register();

  const subject = "100 seats for a year";
  const terms = { seats: 100, pricePerSeatPerMonth: 50, contractLengthMonths: 12 };
  const validUntil = new Date(Date.now() + 86_400_000).toISOString();
  const invitation = { proposalId: "inv", type: "session-invitation", subject };
  const sessionId = await buyer.invite(vendor, invitation);
  tell("buyer", "PROPOSE", "invited");
  const obligations = {
    buyer: { party: buyer.uri, action: "pays", verificationMethod: "invoice-payment" },
    vendor: { party: vendor.uri, action: "provides the seats", verificationMethod: "platform-access" },
  };
  const lines: readonly [string, Party, string, JsonObject][] = [
    ["vendor", vendor, "ACCEPT", { referenceId: "inv" }],
    ["buyer", buyer, "INFORM", buyer.identity],
    ["vendor", vendor, "INFORM", vendor.identity],
    ["buyer", buyer, "PROPOSE", { proposalId: "prop", type: "terms", subject, terms, validUntil }],
    ["vendor", vendor, "ACCEPT", { referenceId: "prop" }],
    ["buyer", buyer, "COMMIT", { commitmentId: "cmt", type: "agreement", subject, terms, obligations }],
    ["vendor", vendor, "ACCEPT", { referenceId: "cmt" }],
    ["vendor", vendor, "INFORM", { informType: "result", references: ["cmt"] }],
    ["buyer", buyer, "CLOSE", { outcome: "fulfilled", ratings: [{ agentId: vendor.uri, stars: 5 }] }],
    ["vendor", vendor, "CLOSE", { outcome: "fulfilled", ratings: [{ agentId: buyer.uri, stars: 5 }] }],
  ];
  for (const [who, party, performative, body] of lines) {
    const other = party === buyer ? vendor : buyer;
    const recipient = performative === "PROPOSE" ? other : undefined;
    tell(who, performative, await party.say(sessionId, performative, body, recipient));
  }
  return {
    sessionId,
    transcript: await documentOf(await fetch(`${url}/v1/asp/sessions/${sessionId}/transcript`)),
    keys: await documentOf(await fetch(`${url}/v1/asp/keys`)),
  };
}
