import { invalid } from "@depute/core";
import { admitted } from "../../src/admitted.ts";
import type { Clients } from "../../src/clients.ts";
import { type Answer, type Asked, type Events, json, names, type Wire } from "../../src/edge/route.ts";
import { JSON_TYPES } from "../../src/json-rpc-route.ts";
import { codesDocument, lineagePage } from "./documents.ts";
import { toCapError } from "./errors.ts";
import { toSse } from "./events.ts";
import { CapMethods, wholeNumber } from "./methods.ts";
import { AGENT_SCHEMA, compileManifests } from "./validate.ts";

/** The CAP wire: manifests, messages, inboxes, lineages and reviews over HTTP. */
export function capWire(clients: Clients): Wire {
  const methods = new CapMethods(clients, compileManifests());
  const takes = JSON_TYPES;
  return {
    name: "cap",
    toError: toCapError,
    routes: [
      { method: "GET", path: "/cap/agents", answer: (asked) => methods.manifests(asked) },
      { method: "POST", path: "/cap/agents", takes, answer: (asked) => methods.register(asked) },
      { method: "GET", path: "/cap/agents/{id}", answer: (asked) => methods.manifest(asked) },
      { method: "PUT", path: "/cap/agents/{id}", takes, answer: (asked) => methods.register(asked) },
      { method: "POST", path: "/cap/messages", takes, answer: (asked) => methods.send(asked) },
      {
        method: "GET",
        path: "/cap/inbox/{id}",
        answer: (asked) => methods.inbox(asked),
        events: (asked) => watchInbox(clients, asked),
      },
      {
        method: "POST",
        path: "/cap/inbox/{id}/acknowledgements",
        takes,
        answer: (asked) => methods.acknowledge(asked),
      },
      { method: "GET", path: "/cap/tasks/{id}", answer: (asked) => answerLineage(methods, asked) },
      {
        method: "GET",
        path: "/cap/tasks/{id}/conversations/{agent}",
        answer: (asked) => methods.conversation(asked),
      },
      { method: "GET", path: "/cap/reviews", answer: (asked) => methods.reviews(asked) },
      { method: "GET", path: "/cap/reviews/{id}", answer: (asked) => methods.review(asked) },
      {
        method: "POST",
        path: "/cap/reviews/{id}/decision",
        takes,
        answer: (asked) => methods.decide(asked),
      },
      { method: "GET", path: "/cap/error-codes", answer: async () => json(codesDocument()) },
      {
        method: "GET",
        path: "/cap/schemas/agent.schema.json",
        answer: async () => ({
          kind: "text",
          text: AGENT_SCHEMA,
          headers: { "content-type": "application/schema+json" },
        }),
      },
    ],
  };
}

async function watchInbox({ messages }: Clients, { parameters, query, call }: Asked): Promise<Events> {
  const after = query.has("after") ? query : new URLSearchParams({ after: call.lastEventId ?? "0" });
  const afterSequence = BigInt(wholeNumber(after, "after"));
  const watch = { agentId: parameters.id ?? "", afterSequence, tellStart: true };
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

async function answerLineage(methods: CapMethods, asked: Asked): Promise<Answer> {
  const form = formOf(asked);
  const { document, text, mermaid } = await methods.lineage(asked);
  if (form === "json") return json(document);
  const page = form === "html" ? lineagePage(asked.parameters.id ?? "", text, mermaid) : undefined;
  return {
    kind: "text",
    text: page ?? (form === "mermaid" ? mermaid : text),
    headers: FORM_HEADERS[form],
  };
}

/** The form of a lineage that is asked for: by `format`, else by the `accept` header. */
function formOf({ headers, query }: Asked): keyof typeof FORM_HEADERS | "json" {
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
