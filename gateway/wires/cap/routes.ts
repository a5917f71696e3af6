import { invalid } from "@depute/core";
import { admitted } from "../../edge/admitted.ts";
import type { Clients } from "../../edge/clients.ts";
import {
  type Answer,
  type Events,
  JSON_TYPES,
  json,
  names,
  type Wire,
  type WireRequest,
} from "../../edge/route.ts";
import { codesDocument, lineagePage } from "./documents.ts";
import { toCapError } from "./errors.ts";
import { toSse } from "./events.ts";
import { CapMethods, wholeNumber } from "./methods.ts";
import { AGENT_SCHEMA, compileManifests } from "./validate.ts";

/** The query parameters of a list whose pages are linked by cursors. */
const PAGE = ["limit", "cursor"];

/** The CAP wire: manifests, messages, inboxes, lineages and reviews over HTTP. */
export function capWire(clients: Clients): Wire {
  const methods = new CapMethods(clients, compileManifests());
  const takes = JSON_TYPES;
  return {
    name: "cap",
    toError: toCapError,
    claims: ["/cap"],
    routes: [
      {
        method: "GET",
        path: "/cap/agents",
        query: PAGE,
        answer: (wireRequest) => methods.manifests(wireRequest),
      },
      {
        method: "POST",
        path: "/cap/agents",
        takes,
        query: ["principal"],
        answer: (wireRequest) => methods.register(wireRequest),
      },
      { method: "GET", path: "/cap/agents/{id}", answer: (wireRequest) => methods.manifest(wireRequest) },
      {
        method: "PUT",
        path: "/cap/agents/{id}",
        takes,
        query: ["principal"],
        answer: (wireRequest) => methods.register(wireRequest),
      },
      { method: "POST", path: "/cap/messages", takes, answer: (wireRequest) => methods.send(wireRequest) },
      {
        method: "GET",
        path: "/cap/inbox/{id}",
        query: ["after", "limit", "unacknowledged"],
        answer: (wireRequest) => methods.inbox(wireRequest),
        events: (wireRequest) => watchInbox(clients, wireRequest),
      },
      {
        method: "POST",
        path: "/cap/inbox/{id}/acknowledgements",
        takes,
        answer: (wireRequest) => methods.acknowledge(wireRequest),
      },
      {
        method: "GET",
        path: "/cap/tasks/{id}",
        query: ["format"],
        gives: [...JSON_TYPES, ...Object.values(FORM_HEADERS).map((headers) => headers["content-type"])],
        answer: (wireRequest) => answerLineage(methods, wireRequest),
      },
      {
        method: "GET",
        path: "/cap/tasks/{id}/conversations/{agent}",
        query: ["after", "limit"],
        answer: (wireRequest) => methods.conversation(wireRequest),
      },
      {
        method: "GET",
        path: "/cap/reviews",
        query: [...PAGE, "state", "reviewer"],
        answer: (wireRequest) => methods.reviews(wireRequest),
      },
      { method: "GET", path: "/cap/reviews/{id}", answer: (wireRequest) => methods.review(wireRequest) },
      {
        method: "POST",
        path: "/cap/reviews/{id}/decision",
        takes,
        answer: (wireRequest) => methods.decide(wireRequest),
      },
      { method: "GET", path: "/cap/error-codes", answer: async () => json(codesDocument()) },
      {
        method: "GET",
        path: "/cap/schemas/agent.schema.json",
        gives: ["application/schema+json"],
        answer: async () => ({
          kind: "text",
          text: AGENT_SCHEMA,
          headers: { "content-type": "application/schema+json" },
        }),
      },
    ],
  };
}

async function watchInbox({ messages }: Clients, { parameters, query, call }: WireRequest): Promise<Events> {
  const after = query.has("after") ? query : new URLSearchParams({ after: call.lastEventId ?? "0" });
  const afterSequence = BigInt(wholeNumber(after, "after"));
  const watch = { agentId: parameters.id ?? "", afterSequence, sendStart: true };
  const watched = await admitted(messages.watchInbox(watch, call.asCaller));
  return toSse(watched, call.requestId);
}

const FORM_HEADERS = {
  text: { "content-type": "text/plain; charset=utf-8" },
  mermaid: { "content-type": "text/vnd.mermaid; charset=utf-8" },
  html: {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
  },
} as const;

async function answerLineage(methods: CapMethods, wireRequest: WireRequest): Promise<Answer> {
  const form = formOf(wireRequest);
  const { document, text, mermaid } = await methods.lineage(wireRequest);
  if (form === "json") return json(document);
  const page = form === "html" ? lineagePage(wireRequest.parameters.id ?? "", text, mermaid) : undefined;
  return {
    kind: "text",
    text: page ?? (form === "mermaid" ? mermaid : text),
    headers: FORM_HEADERS[form],
  };
}

/**
 * Returns the form in which the client requests a lineage. The query parameter `format` decides; if it is absent, the
 * `accept` header decides.
 */
function formOf({ headers, query }: WireRequest): keyof typeof FORM_HEADERS | "json" {
  const format = query.get("format");
  if (format !== null) {
    if (format === "json" || Object.hasOwn(FORM_HEADERS, format)) {
      return format as keyof typeof FORM_HEADERS | "json";
    }
    throw invalid("format", "must be json, text, mermaid or html");
  }
  if (names(headers, "text/plain")) return "text";
  if (names(headers, "text/vnd.mermaid")) return "mermaid";
  return names(headers, "text/html") ? "html" : "json";
}
