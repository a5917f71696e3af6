import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason, invalid, isObject } from "@depute/core";
import { decodeValid, parseJson, refusalOf } from "@depute/wire";
import { admitted } from "../../src/admitted.ts";
import type { Clients } from "../../src/clients.ts";
import { type Asked, type Body, type Events, json, type Route, type Wire } from "../../src/edge/route.ts";
import { JSON_TYPES, type WireDeps } from "../../src/json-rpc-route.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { type AgentaMessage, PATHS, type PublishedDocument, publishedDocuments } from "./documents.ts";
import { toAgentaError } from "./errors.ts";
import { toSse } from "./events.ts";
import { agentaMethods, EXECUTIONS, type Method } from "./methods.ts";
import { compileAgenta, type ValidateAgenta } from "./validate.ts";

/** Where receipts are listed, or followed as server-sent events. */
const RECEIPTS = `${EXECUTIONS}/{id}/receipts`;

/** Addresses that take a document of the protocol; the bodies of others may be left out. */
const DOCUMENTS = new Set(["/agenta/offers", EXECUTIONS, "/agenta/verification_results"]);

/** The Agenta wire: offers, requests, receipts and verification results as JSON documents over HTTP. */
export function agentaWire(clients: Clients, deps: Pick<WireDeps, "publicUrl">): Wire {
  const validate = compileAgenta();
  const calls = Object.entries(agentaMethods(clients)).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([name, method]): Route => ({
        method: name as Route["method"],
        path,
        ...(name !== "GET" && { takes: JSON_TYPES, mayOmitBody: !DOCUMENTS.has(path) }),
        ...(path === RECEIPTS && { events: (asked) => watchReceipts(clients, asked) }),
        answer: (asked) => answerCall(method, asked, validate),
      }),
    ),
  );
  return { name: "agenta", toError: toAgentaError, routes: [...documentRoutes(deps), ...calls] };
}

async function answerCall(method: Method, asked: Asked, validate: ValidateAgenta) {
  const { status, body, headers } = await method({
    ...asked,
    read: async (message, schema) => documentOf(asked.body, message, schema, validate),
    readObject: async () => objectOf(asked.body),
  });
  return json(body, status, { "cache-control": "no-store", ...headers });
}

async function watchReceipts({ executions }: Clients, { parameters, query, call }: Asked): Promise<Events> {
  const afterNumber = afterOf(query, call);
  const watch = { requestId: parameters.id ?? "", afterNumber, tellStart: true };
  return toSse(await admitted(executions.watchReceipts(watch, call.asCaller)), call.requestId);
}

/** The documents name the platform's own address, which is known once it listens. */
function documentRoutes(deps: Pick<WireDeps, "publicUrl">): Route[] {
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
  return PATHS.map((path) => ({
    method: "GET",
    path,
    answer: async () => {
      const document = find(path);
      if (document === undefined) throw new DeputeError(ErrorReason.INTERNAL, `no document at ${path}`);
      return { kind: "document", document };
    },
  }));
}

function parsed({ bytes }: Body): JsonValue {
  const result = parseJson(bytes, { maxBytes: bytes.length });
  if (!result.ok) throw refusalOf(result.error);
  return result.value;
}

/** The document of a body: first the protocol's own schema has to take it, then the rules of the contract. */
function documentOf<Desc extends DescMessage>(
  body: Body | undefined,
  message: AgentaMessage,
  schema: Desc,
  validate: ValidateAgenta,
): MessageShape<Desc> {
  if (body === undefined) throw new Error("the route takes a body");
  const value = parsed(body);
  const valid = validate(message, value);
  if (!valid.ok) {
    const said = valid.faults.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
    throw new DeputeError(ErrorReason.INVALID_REQUEST, said.join("; "), {
      violations: valid.faults.map(({ path, message }) => ({ field: path, description: message })),
    });
  }
  const decoded = decodeValid(schema, value);
  if (!decoded.ok) throw refusalOf(...decoded.errors);
  return decoded.message;
}

/** The object of a body that may be left out. */
function objectOf(body: Body | undefined): JsonObject {
  if (body === undefined) return {};
  const value = parsed(body);
  if (isObject(value)) return value as JsonObject;
  throw invalid("", "must be an object");
}

/** The number of the last receipt that the client has. */
function afterOf(query: URLSearchParams, { lastEventId }: WireCall): number {
  const text = lastEventId ?? query.get("after") ?? "0";
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw invalid(lastEventId === undefined ? "after" : "Last-Event-ID", "is the number of a receipt");
}
