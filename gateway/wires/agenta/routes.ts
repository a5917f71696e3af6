import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason, invalid, isObject } from "@depute/core";
import { decodeValid, parseJson, refusalOf } from "@depute/wire";
import { admitted } from "../../edge/admitted.ts";
import type { Clients } from "../../edge/clients.ts";
import {
  type Body,
  type Events,
  JSON_TYPES,
  json,
  type MethodRoute,
  type Wire,
  type WireRequest,
} from "../../edge/route.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { ADDRESSES, type AgentaMessage, type PublishedDocument, publishedDocuments } from "./documents.ts";
import { toAgentaError } from "./errors.ts";
import { toSse } from "./events.ts";
import { agentaMethods, EXECUTIONS, type Method } from "./methods.ts";
import { compileAgenta, type ValidateAgenta } from "./validate.ts";

/** The address of an execution's receipts, as a list or as server-sent events. */
const RECEIPTS = `${EXECUTIONS}/{id}/receipts`;

/**
 * The addresses that require a document of the protocol as body. At all other addresses, the client may omit the body.
 */
const DOCUMENTS = new Set(["/agenta/offers", EXECUTIONS, "/agenta/verification_results"]);

const PAGE = ["limit", "cursor"];
const PARTIES = ["buyer_agent_id", "seller_agent_id"];

/** The allowed query parameters, by method and path. All other addresses allow none. */
const QUERIES: Readonly<Record<string, readonly string[]>> = {
  "GET /agenta/offers": [...PAGE, ...PARTIES, "organization_id", "capability", "valid_at"],
  [`GET ${EXECUTIONS}`]: [...PAGE, ...PARTIES],
  [`GET ${RECEIPTS}`]: ["after"],
  "GET /agenta/verification_results": ["receipt_id"],
};

/** The Agenta wire: offers, requests, receipts and verification results as JSON documents over HTTP. */
export function agentaWire(clients: Clients, deps: Pick<WireDeps, "publicUrl">): Wire {
  const validate = compileAgenta();
  const calls = Object.entries(agentaMethods(clients)).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([name, method]): MethodRoute => ({
        method: name as MethodRoute["method"],
        path,
        query: QUERIES[`${name} ${path}`] ?? [],
        ...(name !== "GET" && { takes: JSON_TYPES, mayOmitBody: !DOCUMENTS.has(path) }),
        ...(path === RECEIPTS && { events: (wireRequest) => watchReceipts(clients, wireRequest) }),
        answer: (wireRequest) => answerCall(method, wireRequest, validate),
      }),
    ),
  );
  return {
    name: "agenta",
    toError: toAgentaError,
    claims: ["/agenta"],
    routes: [...documentRoutes(deps), ...calls],
  };
}

async function answerCall(method: Method, wireRequest: WireRequest, validate: ValidateAgenta) {
  const { status, body, headers } = await method({
    ...wireRequest,
    read: async (message, schema) => documentOf(wireRequest.body, message, schema, validate),
    readObject: async () => objectOf(wireRequest.body),
  });
  return json(body, status, { "cache-control": "no-store", ...headers });
}

async function watchReceipts(
  { executions }: Clients,
  { parameters, query, call }: WireRequest,
): Promise<Events> {
  const afterSequence = BigInt(afterOf(query, call));
  const watch = { requestId: parameters.id ?? "", afterSequence, sendStart: true };
  return toSse(await admitted(executions.watchReceipts(watch, call.asCaller)), call.requestId);
}

/**
 * Creates the routes of the published documents. Each route reads the documents only on request, because they contain
 * the platform's address, which is set only after the server listens.
 */
function documentRoutes(deps: Pick<WireDeps, "publicUrl">): MethodRoute[] {
  let published:
    | { readonly url: string; readonly byPath: ReadonlyMap<string, PublishedDocument> }
    | undefined;
  const find = (path: string) => {
    if (published?.url !== deps.publicUrl) {
      const byPath = new Map(publishedDocuments(deps.publicUrl).map((each) => [each.path, each]));
      published = { url: deps.publicUrl, byPath };
    }
    return published.byPath.get(path);
  };
  return ADDRESSES.map(({ path, contentType }) => ({
    method: "GET",
    path,
    gives: [contentType],
    answer: async () => {
      const document = find(path);
      if (document === undefined)
        throw new DeputeError(ErrorReason.INTERNAL, `the document at ${path} does not exist`);
      return { kind: "document", document };
    },
  }));
}

function parsed({ bytes }: Body): JsonValue {
  const result = parseJson(bytes, { maxBytes: bytes.length });
  if (!result.ok) throw refusalOf(result.error);
  return result.value;
}

/** Reads the document in a body. Checks it against the protocol's schema, then against the rules of the contract. */
function documentOf<Desc extends DescMessage>(
  body: Body | undefined,
  message: AgentaMessage,
  schema: Desc,
  validate: ValidateAgenta,
): MessageShape<Desc> {
  if (body === undefined) throw new Error("the request must have a body");
  const value = parsed(body);
  const valid = validate(message, value);
  if (!valid.ok) {
    const faultTexts = valid.faults.map(({ path, message }) =>
      path === "" ? message : `${path}: ${message}`,
    );
    throw new DeputeError(ErrorReason.INVALID_REQUEST, faultTexts.join("; "), {
      violations: valid.faults.map(({ path, message }) => ({ field: path, description: message })),
    });
  }
  const decoded = decodeValid(schema, value);
  if (!decoded.ok) throw refusalOf(...decoded.errors);
  return decoded.message;
}

/** Reads the JSON object in a body; returns an empty object if the client omitted the body. */
function objectOf(body: Body | undefined): JsonObject {
  if (body === undefined) return {};
  const value = parsed(body);
  if (isObject(value)) return value as JsonObject;
  throw invalid("", "must be an object");
}

/** Returns the sequence of the last receipt that the client has; 0 if the client has none. */
function afterOf(query: URLSearchParams, { lastEventId }: WireCall): number {
  const text = lastEventId ?? query.get("after") ?? "0";
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw invalid(lastEventId === undefined ? "after" : "Last-Event-ID", "must be the sequence of a receipt");
}
