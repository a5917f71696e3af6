/** An agent that buys, over plain HTTP with JSON: `node buyer.ts http://127.0.0.1:8080 '[OFFER, SCARCE OFFER]'`. */
import { type Json, post, receipts, register, say } from "./http.ts";

const [url = "", handed = "[]"] = process.argv.slice(2);
const [words, scarce] = JSON.parse(handed);
const AGENT = "reader";
const ORGANIZATION = "org:reader";

await register(url, AGENT, ORGANIZATION);

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

function ask(offer: Json, text: string, change: Json = {}): Promise<{ status: number; body: Json }> {
  return post(`${url}/agenta/execution_requests`, {
    protocol_version: "agenta.delegation.v0",
    message_type: "execution_request",
    request_id: `request-${crypto.randomUUID()}`,
    offer_id: offer.offer_id,
    offer_version: offer.offer_version,
    buyer_agent: { agent_id: AGENT, organization_id: ORGANIZATION },
    seller_agent_id: offer.seller_agent.agent_id,
    input: { text },
    payment: {
      currency: "EUR",
      max_amount: 100,
      payment_authorization_id: "auth-0001",
      escrow_required: true,
    },
    execution_constraints: { deadline_at: inSeconds(300) },
    idempotency_key: crypto.randomUUID(),
    requested_at: inSeconds(0),
    ...change,
  });
}

/** Follows the receipts of a request and returns the final one. */
async function end(requestId: string): Promise<Json> {
  for await (const _ of receipts(url, requestId));
  return (await fetch(`${url}/agenta/execution_requests/${requestId}`)).json();
}

// Buys the work, from the request to the settled receipt.
const constraints = { deadline_at: inSeconds(300), requires_human_approval_before_start: true };
const { body: accepted } = await ask(words, "the quick brown fox", { execution_constraints: constraints });
say({ what: "requested", receipt: accepted });
const { body: approved } = await post(`${url}/agenta/execution_requests/${accepted.request_id}/approve`, {});
say({ what: "approved", receipt: approved });
for await (const { event, data } of receipts(url, accepted.request_id)) say({ what: event, receipt: data });
say({ what: "newest", receipt: await end(accepted.request_id) });

// Provokes the failure modes in the order of the protocol's manifest.
const payment = { currency: "EUR", max_amount: "100", payment_authorization_id: "auth-0001" };
say({ mode: "schema_validation_failure", ...(await ask(words, "x", { payment })) });
say({ mode: "offer_version_mismatch", ...(await ask(words, "x", { offer_version: "99" })) });
say({
  mode: "budget_authorization_missing",
  ...(await ask(words, "x", { payment: { ...payment, max_amount: 1 } })),
});
const { body: only } = await ask(scarce, "sleep:on");
say({ mode: "capacity_unavailable", ...(await ask(scarce, "one too many")) });
await post(`${url}/agenta/execution_requests/${only.request_id}/cancel`, { reason: "made room" });
const LATER: readonly (readonly [mode: string, text: string, change?: Json])[] = [
  ["upstream_dependency_failed", "fail:UPSTREAM_DEPENDENCY_FAILED"],
  ["deadline_exceeded", "sleep:on", { execution_constraints: { deadline_at: inSeconds(3) } }],
  ["output_schema_violation", "blur:it"],
  ["required_evidence_missing", "omit:it"],
  ["digest_mismatch", "forge:it"],
];
for (const [mode, text, change] of LATER) {
  const { status, body } = await ask(words, text, change);
  say({ mode, status, body: await end(body.request_id) });
}
