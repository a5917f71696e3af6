import type { JsonValue } from "@bufbuild/protobuf";
import { invalid } from "@depute/core";
import {
  type BodyLimits,
  type HttpRequest,
  type HttpRoute,
  sendJson,
  sendText,
  takeBody,
} from "@depute/service";
import { parseJson, refusalOf } from "@depute/wire";
import { admitted } from "../../src/admitted.ts";
import type { Clients } from "../../src/clients.ts";
import { JSON_TYPES, type WireDeps } from "../../src/json-rpc-route.ts";
import { sendEvents } from "../../src/sse.ts";
import { wireCall } from "../../src/wire-call.ts";
import { codesDocument, lineagePage } from "./documents.ts";
import { type About, BrokenJson, positionOf, toCapError } from "./errors.ts";
import { toSse } from "./events.ts";
import { type Answer, type Asked, CapMethods, wholeNumber } from "./methods.ts";
import { AGENT_SCHEMA, compileManifests } from "./validate.ts";

const INBOX = "/cap/inbox/{id}";
const TASK = "/cap/tasks/{id}";
const CODES = "/cap/error-codes";
const SCHEMA = "/cap/schemas/agent.schema.json";

type Method = (asked: Asked) => Promise<Answer>;

/** The CAP wire: manifests, messages, inboxes, lineages and reviews over HTTP. */
export function capRoutes(clients: Clients, deps: WireDeps): HttpRoute[] {
  const methods = new CapMethods(clients, compileManifests());
  const table: Readonly<Record<string, Readonly<Record<string, Method>>>> = {
    "/cap/agents": { GET: (asked) => methods.manifests(asked), POST: (asked) => methods.register(asked) },
    "/cap/agents/{id}": { GET: (asked) => methods.manifest(asked), PUT: (asked) => methods.register(asked) },
    "/cap/messages": { POST: (asked) => methods.send(asked) },
    [INBOX]: { GET: (asked) => methods.inbox(asked) },
    "/cap/inbox/{id}/acknowledgements": { POST: (asked) => methods.acknowledge(asked) },
    [TASK]: { GET: async (asked) => ({ status: 200, body: (await methods.lineage(asked)).document }) },
    "/cap/tasks/{id}/conversations/{agent}": { GET: (asked) => methods.conversation(asked) },
    "/cap/reviews": { GET: (asked) => methods.reviews(asked) },
    "/cap/reviews/{id}": { GET: (asked) => methods.review(asked) },
    "/cap/reviews/{id}/decision": { POST: (asked) => methods.decide(asked) },
  };
  const calls = Object.entries(table).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([name, method]) => ({ path, name, method })),
  );
  const routes = calls.map(
    ({ path, name, method }): HttpRoute => ({
      methods: [name],
      path,
      ...(name !== "GET" && { takes: JSON_TYPES }),
      // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: a table of routes, each with a few lines of its own
      async handle(request, response, parameters) {
        const call = wireCall(request, response, deps.publicUrl);
        const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
        let about: About = {};
        try {
          const asked: Asked = {
            parameters,
            query,
            call,
            key: String(request.headers["idempotency-key"] ?? ""),
            body: () => documentOf(request, deps.bodies),
            about: (known) => {
              about = known;
            },
          };
          if (path === INBOX && wants(request, "text/event-stream")) {
            const after = query.has("after")
              ? query
              : new URLSearchParams({ after: call.lastEventId ?? "0" });
            const afterSequence = BigInt(wholeNumber(after, "after"));
            const watch = { agentId: parameters.id ?? "", afterSequence, tellStart: true };
            const watched = await admitted(clients.messages.watchInbox(watch, call.asCaller));
            return await sendEvents(response, toSse(watched, call.requestId), deps);
          }
          const form = path === TASK ? formOf(request, query) : "json";
          if (form !== "json") {
            const { text, mermaid } = await methods.lineage(asked);
            const page = form === "html" ? lineagePage(parameters.id ?? "", text, mermaid) : undefined;
            return sendText(response, 200, page ?? (form === "mermaid" ? mermaid : text), HEADERS[form]);
          }
          const { status, body } = await method(asked);
          sendJson(response, status, body);
        } catch (thrown) {
          const { status, body } = toCapError(thrown, about, call.requestId);
          if (status >= 500) deps.log.error({ err: thrown, path, request_id: call.requestId }, "cap");
          else deps.log.info({ path, request_id: call.requestId, reason: body.reason }, "cap");
          sendJson(response, status, body);
        }
      },
    }),
  );
  return [
    ...routes,
    {
      methods: ["GET"],
      path: CODES,
      handle: async (_request, response) => sendJson(response, 200, codesDocument()),
    },
    {
      methods: ["GET"],
      path: SCHEMA,
      handle: async (_request, response) =>
        sendText(response, 200, AGENT_SCHEMA, { "content-type": "application/schema+json" }),
    },
  ];
}

const HEADERS = {
  text: { "content-type": "text/plain; charset=utf-8" },
  mermaid: { "content-type": "text/vnd.mermaid; charset=utf-8" },
  html: {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
  },
} as const;

/** The form of a lineage that is asked for: by `format`, else by the `accept` header. */
function formOf(request: HttpRequest, query: URLSearchParams): keyof typeof HEADERS | "json" {
  const format = query.get("format");
  if (format !== null) {
    if (format === "json" || Object.hasOwn(HEADERS, format)) return format as keyof typeof HEADERS | "json";
    throw invalid("format", "must be json, text, mermaid or html");
  }
  if (wants(request, "text/plain")) return "text";
  if (wants(request, "text/vnd.mermaid")) return "mermaid";
  return wants(request, "text/html") ? "html" : "json";
}

function wants({ headers }: HttpRequest, type: string): boolean {
  const accepted = (headers.accept ?? "").toLowerCase().split(",");
  return accepted.some((one) => one.split(";", 1)[0]?.trim() === type);
}

/** The document of a body; a text that is none is refused with the place of its fault. */
async function documentOf(request: HttpRequest, limits: BodyLimits): Promise<JsonValue> {
  const bytes = await takeBody(request, JSON_TYPES, limits);
  const parsed = parseJson(bytes, { maxBytes: bytes.length });
  if (parsed.ok) return parsed.value;
  const { error } = parsed;
  if (error.position === undefined) throw refusalOf(error);
  throw new BrokenJson(error, positionOf(bytes.toString("utf8"), error.position));
}
