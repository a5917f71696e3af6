import type { DescMessage, JsonObject, MessageShape } from "@bufbuild/protobuf";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { type BodyLimits, type HttpRequest, type HttpRoute, sendJson, takeBody } from "@depute/service";
import { decodeValid, parseJson, refusalOf } from "@depute/wire";
import { admitted } from "../../src/admitted.ts";
import type { Clients } from "../../src/clients.ts";
import { JSON_TYPES, type WireDeps } from "../../src/json-rpc-route.ts";
import { sendEvents } from "../../src/sse.ts";
import { sendValidated } from "../../src/validated.ts";
import { type WireCall, wireCall } from "../../src/wire-call.ts";
import { type AgentaMessage, PATHS, type PublishedDocument, publishedDocuments } from "./documents.ts";
import { toAgentaError } from "./errors.ts";
import { toSse } from "./events.ts";
import { type Asked, agentaMethods, EXECUTIONS } from "./methods.ts";
import { compileAgenta, type ValidateAgenta } from "./validate.ts";

export { AGENTA_MESSAGES, type AgentaMessage, readDocument, schemaFile } from "./documents.ts";
export { type AgentaFault, type AgentaValidation, compileAgenta, type ValidateAgenta } from "./validate.ts";

/** Where receipts are listed, or followed as server-sent events. */
const RECEIPTS = `${EXECUTIONS}/{id}/receipts`;

/** The Agenta wire: offers, requests, receipts and verification results as JSON documents over HTTP. */
export function agentaRoutes(clients: Clients, deps: WireDeps): HttpRoute[] {
  const validate = compileAgenta();
  const table = Object.entries(agentaMethods(clients)).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, method]) => ({ path, name, method })),
  );
  const calls = table.map(({ path, name, method }): HttpRoute => {
    return {
      methods: [name],
      path,
      ...(name !== "GET" && { takes: JSON_TYPES }),
      async handle(request, response, parameters) {
        const call = wireCall(request, response, deps.publicUrl);
        try {
          const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
          if (path === RECEIPTS && call.acceptsEvents) {
            const afterNumber = afterOf(query, call);
            const watch = { requestId: parameters.id ?? "", afterNumber, tellStart: true };
            const watched = await admitted(clients.executions.watchReceipts(watch, call.asCaller));
            return await sendEvents(response, toSse(watched, call.requestId), deps);
          }
          const asked: Asked = {
            parameters,
            query,
            call,
            read: (message, schema) => document(request, message, schema, deps.bodies, validate),
            readObject: () => objectOf(request, deps.bodies),
          };
          const { status, body, headers = {} } = await method(asked);
          sendJson(response, status, body, { "cache-control": "no-store", ...headers });
        } catch (thrown) {
          const { status, body } = toAgentaError(thrown, call.requestId);
          const note = { path, request_id: call.requestId, code: body.error.code };
          if (status >= 500) deps.log.error({ ...note, err: thrown }, "agenta");
          else deps.log.info(note, "agenta");
          sendJson(response, status, body);
        }
      },
    };
  });
  return [...documentRoutes(deps), ...calls];
}

/** The documents name the platform's own address, which is known once it listens. */
function documentRoutes(deps: WireDeps): HttpRoute[] {
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
    methods: ["GET"],
    path,
    handle: async (request, response) => {
      const found = find(path);
      if (found === undefined) throw new DeputeError(ErrorReason.INTERNAL, `no document at ${path}`);
      sendValidated(request, response, found);
    },
  }));
}

async function parsed(request: HttpRequest, limits: BodyLimits) {
  const bytes = await takeBody(request, JSON_TYPES, limits);
  const result = parseJson(bytes, { maxBytes: bytes.length });
  if (!result.ok) throw refusalOf(result.error);
  return result.value;
}

/** The document of a body: first the protocol's own schema has to take it, then the rules of the contract. */
async function document<Desc extends DescMessage>(
  request: HttpRequest,
  message: AgentaMessage,
  schema: Desc,
  limits: BodyLimits,
  validate: ValidateAgenta,
): Promise<MessageShape<Desc>> {
  const value = await parsed(request, limits);
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

/** A body that may be left out. */
async function objectOf(request: HttpRequest, limits: BodyLimits): Promise<JsonObject> {
  const { headers } = request;
  const hasBody = Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined;
  const hasType = headers["content-type"] !== undefined;
  if (!hasBody && !hasType) return {};
  if (headers["content-length"] === "0") return {};
  const value = await parsed(request, limits);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalid("", "must be an object");
}

/** The number of the last receipt that the client has. */
function afterOf(query: URLSearchParams, { lastEventId }: WireCall): number {
  const text = lastEventId ?? query.get("after") ?? "0";
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw invalid(lastEventId === undefined ? "after" : "Last-Event-ID", "is the number of a receipt");
}
