import { notAcceptable } from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import type { MethodRoute, Wire, WireRequest } from "../../edge/route.ts";
import { EVENT_STREAM } from "../../edge/wire-call.ts";
import { ASP_TYPES, writeAsp } from "./documents.ts";
import { toAspError } from "./errors.ts";
import { SOCKET_PATH } from "./live.ts";
import { AspMethods } from "./methods.ts";

const SESSIONS = "/v1/asp/sessions";
const SESSION = `${SESSIONS}/{id}`;
const DELEGATION = `${SESSION}/delegations/{delegation}`;

/** The query parameters of lists that belong to an agent, such as its sessions. */
const PAGE = ["agent_id", "limit", "cursor"];
/** The query parameters that state where a list or a stream begins. */
const PLACE = ["since_sequence", "cursor"];

/**
 * The ASP wire. It serves sessions and cards over HTTP, and live messages as server-sent events. (ASP transports
 * "HTTP/SSE")
 */
export function aspWire(clients: Clients): Wire {
  const methods = new AspMethods(clients);
  const get = (
    path: string,
    answer: MethodRoute["answer"],
    more: Partial<MethodRoute> = {},
  ): MethodRoute => ({ method: "GET", path, gives: ASP_TYPES, answer, ...more });
  const taking = (
    method: MethodRoute["method"],
    path: string,
    answer: MethodRoute["answer"],
  ): MethodRoute => ({ method, path, takes: ASP_TYPES, gives: ASP_TYPES, answer });
  return {
    name: "asp",
    claims: ["/v1/asp"],
    toError: toAspError,
    write: writeAsp,
    headersOf: (path, { id }) =>
      id !== undefined && path.startsWith(SESSIONS) ? { "asp-session-id": id } : NO_HEADERS,
    routes: [
      get("/v1/asp/discover", (wireRequest) => methods.discover(wireRequest), {
        query: ["capability", "min_trust"],
      }),
      get("/v1/asp/agents/{id}/card", (wireRequest) => methods.card(wireRequest)),
      taking("POST", SESSIONS, (wireRequest) => methods.createSession(wireRequest)),
      get(SESSIONS, (wireRequest) => methods.listSessions(wireRequest), { query: PAGE }),
      get(SESSION, (wireRequest) => methods.getSession(wireRequest)),
      taking("DELETE", SESSION, (wireRequest) => methods.closeSession(wireRequest)),
      taking("POST", `${SESSION}/messages`, (wireRequest) => methods.send(wireRequest)),
      get(`${SESSION}/messages`, (wireRequest) => methods.listMessages(wireRequest), {
        query: [...PLACE, "limit"],
        events: (wireRequest) => methods.watchMessages(wireRequest),
      }),
      get(`${SESSION}/messages/{message}`, (wireRequest) => methods.getMessage(wireRequest)),
      get(`${DELEGATION}/events`, onlyEvents, {
        query: PLACE,
        gives: [EVENT_STREAM],
        events: (wireRequest) => methods.watchWork(wireRequest),
      }),
      get(`${DELEGATION}/evidence`, (wireRequest) => methods.getEvidence(wireRequest)),
      get(`${SESSION}/disputes`, (wireRequest) => methods.listDisputes(wireRequest)),
      taking("POST", `${SESSION}/disputes`, (wireRequest) => methods.fileDispute(wireRequest)),
      get("/v1/asp/keys", (wireRequest) => methods.keys(wireRequest)),
      get("/v1/asp/evidence", (wireRequest) => methods.listEvidence(wireRequest), { query: PAGE }),
      get(`${SESSION}/transcript`, (wireRequest) => methods.transcript(wireRequest)),
      get(SOCKET_PATH, askForUpgrade),
    ],
  };
}

const NO_HEADERS = {};

/**
 * Refuses a client whose `accept` header does not name `text/event-stream`. A range such as `*\/*` does not suffice,
 * because clients that read only JSON also send this range.
 */
async function onlyEvents(): Promise<never> {
  throw notAcceptable([EVENT_STREAM]);
}

/** Refuses a request at the WebSocket address that does not ask for an upgrade. (RFC 9110 section 15.5.22) */
async function askForUpgrade({ headers }: WireRequest) {
  // Detects HTTP/2, which has no upgrades and no `upgrade` header.
  const isHttp2 = ":method" in headers;
  return {
    kind: "text",
    status: 426,
    text: "",
    headers: isHttp2 ? NO_HEADERS : { upgrade: "websocket", connection: "upgrade" },
  } as const;
}
