import type { JsonObject } from "@bufbuild/protobuf";
import { type AgentaMessage, compileAgenta } from "@depute/gateway/agenta";
import type { TestPlatform } from "../gateway/platform.ts";

// biome-ignore lint/suspicious/noExplicitAny: a document is looked at member by member
export type Document = any;

export const SELLER = "words-seller";
export const BUYER = "buyer-one";
export const AUDITOR = "auditor";

const ORGANIZATIONS = { [SELLER]: "org:words", [BUYER]: "org:buyer", [AUDITOR]: "org:audit" } as const;

const validate = compileAgenta();

/** Checks a document against the protocol's schema, and returns it. */
export function valid(message: AgentaMessage, document: Document): Document {
  const result = validate(message, document);
  if (!result.ok) throw new Error(`${JSON.stringify(result.faults)}: ${JSON.stringify(document)}`);
  return document;
}

let number = 0;
/** Returns an id that no other test uses. */
export function fresh(name: string): string {
  number += 1;
  return `${name}-${number.toString().padStart(6, "0")}`;
}

/** Returns the time that is some seconds from now, in the protocol's notation. */
export function inSeconds(seconds: number, nowMs = Date.now()): string {
  return new Date(nowMs + seconds * 1000).toISOString();
}

export function offerOf(change: JsonObject = {}): JsonObject {
  return {
    protocol_version: "agenta.delegation.v0",
    message_type: "offer",
    offer_id: fresh("offer"),
    seller_agent: { agent_id: SELLER, organization_id: ORGANIZATIONS[SELLER] },
    title: "Sentiment",
    description: "Says how texts sound.",
    input_schema: {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
    },
    output_schema: {
      type: "object",
      properties: { score: { type: "number" } },
      required: ["score"],
    },
    pricing: { pricing_model: "fixed", currency: "EUR", amount: 250 },
    service_levels: {
      target_completion_seconds: 10,
      max_completion_seconds: 3600,
      supports_cancellation: true,
    },
    verification_policy: {
      mode: "seller_attested",
      required_artifacts: ["result_payload"],
      pass_criteria: ["The score lies between -1 and 1."],
    },
    valid_from: "2026-01-01T00:00:00Z",
    ...change,
  };
}

export function requestOf(offer: JsonObject, change: JsonObject = {}): JsonObject {
  return {
    protocol_version: "agenta.delegation.v0",
    message_type: "execution_request",
    request_id: fresh("request"),
    offer_id: offer.offer_id ?? "",
    offer_version: offer.offer_version ?? "1",
    buyer_agent: { agent_id: BUYER, organization_id: ORGANIZATIONS[BUYER] },
    seller_agent_id: SELLER,
    input: { text: "good" },
    payment: { currency: "EUR", max_amount: 1000, payment_authorization_id: "auth-0001" },
    execution_constraints: { deadline_at: inSeconds(600) },
    idempotency_key: fresh("key"),
    requested_at: inSeconds(0),
    ...change,
  };
}

export function resultOf(receipt: JsonObject, change: JsonObject = {}): JsonObject {
  return {
    protocol_version: "agenta.delegation.v0",
    message_type: "verification_result",
    verification_id: fresh("verification"),
    request_id: receipt.request_id ?? "",
    receipt_id: receipt.receipt_id ?? "",
    verifier_agent: { agent_id: AUDITOR, organization_id: ORGANIZATIONS[AUDITOR] },
    decision: "pass",
    score: 0.9,
    checks: [{ check_id: "range", description: "-1 to 1", status: "pass" }],
    verified_at: inSeconds(0),
    ...change,
  };
}

/** A text in the form of a key. It gives the auditor another owner than the agents without a key have. */
const AUDITOR_KEY = `${"U".repeat(42)}M`;

/**
 * Registers the agents of the market, each with its key of `keys`. By default only the auditor has a key. The
 * operator has proven the auditor's organization.
 */
export async function introduceAll(
  { clients }: Pick<TestPlatform, "clients">,
  keys: Record<string, string> = {},
) {
  const keyOf = (id: string) => keys[id] ?? (id === AUDITOR ? AUDITOR_KEY : "");
  for (const [id, organization] of Object.entries(ORGANIZATIONS)) {
    const agent = { id, version: "1.0.0", organization, principal: keyOf(id) };
    await clients.agents.registerAgent({ requestId: crypto.randomUUID(), agent });
  }
  await clients.organizations.createOrganizationProof({
    requestId: crypto.randomUUID(),
    organization: ORGANIZATIONS[AUDITOR],
    principal: keyOf(AUDITOR),
  });
}

/** Calls a market over plain HTTP. Every returned document must satisfy its schema. */
export function marketAt(url: string, headers: Record<string, string> = {}) {
  const send = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url}${path}`, { ...init, headers: { ...headers, ...init.headers } });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Document };
  };
  const post = (path: string, body?: unknown) =>
    send(path, {
      method: "POST",
      ...(body !== undefined && {
        body: typeof body === "string" ? body : JSON.stringify(body),
        headers: { "content-type": "application/json" },
      }),
    });
  const must = async (status: number, answer: ReturnType<typeof send>): Promise<Document> => {
    const { status: actual, body } = await answer;
    if (actual !== status) throw new Error(`${actual} instead of ${status}: ${JSON.stringify(body)}`);
    return body;
  };
  const at = (id: string, what = "") => `/agenta/execution_requests/${id}${what}`;
  return {
    send,
    post,
    publish: async (offer: JsonObject) => valid("offer", await must(201, post("/agenta/offers", offer))),
    request: async (request: JsonObject, status = 201) =>
      valid("execution_receipt", await must(status, post("/agenta/execution_requests", request))),
    newest: async (id: string) => valid("execution_receipt", await must(200, send(at(id)))),
    receipts: async (id: string): Promise<Document[]> => {
      const { receipts } = await must(200, send(at(id, "/receipts")));
      return receipts.map((receipt: Document) => valid("execution_receipt", receipt));
    },
    approve: async (id: string) => valid("execution_receipt", await must(200, post(at(id, "/approve")))),
    cancel: async (id: string) => valid("execution_receipt", await must(200, post(at(id, "/cancel"), {}))),
    settlement: (id: string) => must(200, send(at(id, "/settlement"))),
    verify: async (result: JsonObject) =>
      valid("verification_result", await must(201, post("/agenta/verification_results", result))),
    /** Yields the events of an execution's receipts until the execution ends. */
    async *watch(id: string, after?: string): AsyncGenerator<{ event: string; id: string; data: Document }> {
      const more = after === undefined ? {} : { "last-event-id": after };
      const response = await fetch(`${url}${at(id, "/receipts")}`, {
        headers: { ...headers, ...more, accept: "text/event-stream" },
      });
      if (!response.ok || response.body === null) throw new Error(`${response.status}`);
      let text = "";
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const lines = text.slice(0, end).split("\n");
          text = text.slice(end + 2);
          const field = (name: string) =>
            lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
          if (field("data") === "") continue;
          const data = JSON.parse(field("data"));
          if (field("event") !== "error") valid("execution_receipt", data);
          yield { event: field("event"), id: field("id"), data };
        }
      }
    },
  };
}

export type Market = ReturnType<typeof marketAt>;
