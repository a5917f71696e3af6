import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { type JsonRpcRequest, JsonRpcRequestSchema } from "@depute/contracts/depute/wire/v1/jsonrpc_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { decodeValid, parseJson, refusalOf, type WireError } from "@depute/wire";
import { type ErrorTable, rowOf } from "./error-table.ts";
import { exactIds } from "./exact-ids.ts";
import { type RpcError, refusalIn, toRpcError } from "./fault.ts";
import { type ErrorRow, JSON_RPC } from "./own-codes.ts";
import type { SseEvent } from "./sse.ts";
import type { WireCall } from "./wire-call.ts";

/** Maximum number of calls in one batch. */
export const MAX_BATCH = 20;
/** JSON nesting levels around the parameters: the array of the batch and the object of the call. */
const ENVELOPE_DEPTH = 2;
/** Maximum depth of JSON nesting in the parameters of a call. */
const PARAMS_DEPTH = 40;

/** A result that is a stream of events. The call itself has succeeded, so the stream reports later faults as events. */
export class EventStream {
  readonly events: AsyncGenerator<SseEvent, void, undefined>;

  constructor(events: AsyncGenerator<SseEvent, void, undefined>) {
    this.events = events;
  }
}

/**
 * A method of an endpoint. It converts parameters to a result; an exception becomes the call's error.
 *
 * @param id the id of the call, which each event of a stream repeats; null for a notification
 */
export type JsonRpcMethod = (
  params: unknown,
  call: WireCall,
  id: string | number | null,
) => Promise<JsonValue | EventStream>;

/** The definition of one JSON-RPC address. */
export interface JsonRpcEndpoint {
  readonly methods: ReadonlyMap<string, JsonRpcMethod>;
  readonly errors: ErrorTable;
  /** Methods whose result is a stream. They are not allowed in a batch. */
  readonly streaming?: ReadonlySet<string>;
  /**
   * Whether members of a call that JSON-RPC does not define are ignored. If false, a call with such a member is
   * refused.
   */
  readonly ignoresUnknown?: boolean;
  /**
   * Returns the `data` member of an error in the form that the wire's protocol defines. If this function is
   * absent, `toRpcError` creates the data.
   */
  readonly errorData?: (refusal: DeputeError, requestId: string) => JsonValue;
}

/** The result of one call, for its log line. */
export interface CallNote {
  readonly method: string;
  /** The code of the call's error; 0 if the call succeeded. */
  readonly code: number;
  /** The exception that the call threw; absent if the call succeeded, or was refused before its method ran. */
  readonly thrown?: unknown;
}

/** The answer to the body of one HTTP request, which contains one call or a batch. */
export type Answer =
  | { readonly kind: "json"; readonly body: JsonValue; readonly unauthenticated: boolean }
  | { readonly kind: "events"; readonly events: EventStream["events"] }
  /** There is no answer, because all calls were notifications. */
  | { readonly kind: "nothing"; readonly unauthenticated: boolean };

/** The reply to one call. `body` is undefined for a notification. */
interface Reply {
  readonly body?: JsonObject | EventStream;
  readonly unauthenticated: boolean;
}

/**
 * Answers the body of a JSON-RPC 2.0 request. The body is one call or a batch. The calls of a batch run in order, one
 * after the other. Never throws.
 */
export async function answerJsonRpc(
  endpoint: JsonRpcEndpoint,
  body: Uint8Array,
  call: WireCall,
  note: (note: CallNote) => void,
): Promise<Answer> {
  const parsed = parseJson(body, { maxBytes: body.length, maxDepth: PARAMS_DEPTH + ENVELOPE_DEPTH });
  if (!parsed.ok) {
    const isDeep = parsed.error.reason === "too_deep";
    const row = isDeep ? JSON_RPC.INVALID_REQUEST : JSON_RPC.PARSE_ERROR;
    return json(faulty(endpoint, row, parsed.error.message));
  }
  const ids = exactIds(body, parsed.value);
  if (!Array.isArray(parsed.value)) {
    const { body: reply, unauthenticated } = await answerOne(endpoint, parsed.value, ids, call, note, true);
    if (reply instanceof EventStream) return { kind: "events", events: reply.events };
    return reply === undefined ? { kind: "nothing", unauthenticated } : json(reply, unauthenticated);
  }
  if (parsed.value.length === 0)
    return json(faulty(endpoint, JSON_RPC.INVALID_REQUEST, "the batch must contain at least one call"));
  if (parsed.value.length > MAX_BATCH) {
    return json(
      faulty(endpoint, JSON_RPC.INVALID_REQUEST, `the batch must contain at most ${MAX_BATCH} calls`),
    );
  }
  const replies: JsonValue[] = [];
  for (const element of parsed.value) {
    const { body: reply } = await answerOne(endpoint, element, ids, call, note, false);
    if (reply !== undefined && !(reply instanceof EventStream)) replies.push(reply);
  }
  return replies.length === 0 ? { kind: "nothing", unauthenticated: false } : json(replies);
}

async function answerOne(
  endpoint: JsonRpcEndpoint,
  element: JsonValue,
  ids: ReadonlyMap<JsonValue, number>,
  call: WireCall,
  note: (note: CallNote) => void,
  mayStream: boolean,
): Promise<Reply> {
  const envelope = readEnvelope(element, endpoint.ignoresUnknown === true);
  if (!envelope.ok) {
    note({ method: "", code: JSON_RPC.INVALID_REQUEST.code });
    const reply = faulty(
      endpoint,
      JSON_RPC.INVALID_REQUEST,
      envelope.detail,
      ids.get(element) ?? envelope.id,
    );
    return { body: reply, unauthenticated: false };
  }
  const { method, params } = envelope;
  const id = ids.get(element) ?? envelope.id;
  if (!mayStream && endpoint.streaming?.has(method) === true) {
    note({ method, code: JSON_RPC.INVALID_REQUEST.code });
    const detail = `${method} returns a stream, which a batch cannot contain: call it alone`;
    const reply = faulty(endpoint, JSON_RPC.INVALID_REQUEST, detail, id ?? null);
    return { ...(id === undefined ? {} : { body: reply }), unauthenticated: false };
  }
  try {
    const result = await methodOf(endpoint, method)(params, call, id ?? null);
    note({ method, code: 0 });
    if (!(result instanceof EventStream)) {
      return id === undefined
        ? { unauthenticated: false }
        : { body: { jsonrpc: "2.0", id, result }, unauthenticated: false };
    }
    if (id !== undefined) return { body: result, unauthenticated: false };
    // Closes the stream, because a notification gets no answer. The work behind the stream continues.
    await result.events.return();
    return { unauthenticated: false };
  } catch (thrown) {
    const error = errorOf(endpoint, thrown, call.requestId);
    note({ method, code: error.code, thrown });
    const unauthenticated = error.code === rowOf(endpoint.errors, ErrorReason.UNAUTHENTICATED).code;
    return id === undefined ? { unauthenticated } : { body: failure(id, error), unauthenticated };
  }
}

type Id = string | number | null;

type Envelope =
  /** A valid call. A call without an id is a notification. */
  { ok: true; id: Id | undefined; method: string; params: unknown } | { ok: false; id: Id; detail: string };

/**
 * Reads the members of a call that JSON-RPC defines, and validates them. The parameters must be an object or an
 * array; each method checks their members.
 */
function readEnvelope(element: JsonValue, ignoresUnknown: boolean): Envelope {
  if (typeof element !== "object" || element === null || Array.isArray(element)) {
    return { ok: false, id: null, detail: "a call must be an object" };
  }
  const { params, ...others } = element;
  const rest = ignoresUnknown ? knownMembers(others) : others;
  const read = decodeValid(JsonRpcRequestSchema, rest);
  if (!read.ok) return { ok: false, id: plainId(rest.id), detail: sentence(read.errors) };
  if (params !== undefined && (typeof params !== "object" || params === null)) {
    return { ok: false, id: plainId(rest.id), detail: "/params: must be an object or an array" };
  }
  return { ok: true, id: idOf(read.message), method: read.message.method, params };
}

/** Returns the members `jsonrpc`, `id` and `method` of a call, without those that JSON-RPC does not define. */
function knownMembers(call: JsonObject): JsonObject {
  return Object.fromEntries(
    ["jsonrpc", "id", "method"].flatMap((name) => (name in call ? [[name, call[name] as JsonValue]] : [])),
  );
}

function idOf({ id }: JsonRpcRequest): Id | undefined {
  switch (id.case) {
    case "idText":
    case "idNumber":
      return id.value;
    case "idNull":
      return null;
    default:
      return undefined;
  }
}

/**
 * Returns the id of an invalid call if the id itself is valid; otherwise null. The sender finds by this id the call to
 * which the error belongs.
 */
function plainId(id: unknown): Id {
  return typeof id === "number" || (typeof id === "string" && id.length <= 256) ? id : null;
}

function methodOf({ methods }: JsonRpcEndpoint, method: string): JsonRpcMethod {
  const methodEntry = methods.get(method);
  if (methodEntry !== undefined) return methodEntry;
  const message = "the method does not exist at this address";
  throw new DeputeError(ErrorReason.UNKNOWN_METHOD, message, { metadata: { method } });
}

/**
 * Returns the parameters of a call as a message.
 *
 * @throws DeputeError INVALID_REQUEST with the path of each fault, LIMIT_EXCEEDED
 */
export function readParams<Desc extends DescMessage>(schema: Desc, params: unknown): MessageShape<Desc> {
  const read = decodeValid(schema, params ?? {});
  if (!read.ok) throw refusalOf(...read.errors);
  return read.message;
}

function sentence(errors: readonly WireError[]): string {
  return errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

function json(body: JsonValue, unauthenticated = false): Answer {
  return { kind: "json", body, unauthenticated };
}

/** Converts a thrown value to an error in the form of the endpoint. */
export function errorOf(endpoint: JsonRpcEndpoint, thrown: unknown, requestId: string): RpcError {
  const { errors, errorData } = endpoint;
  const error = toRpcError(errors, thrown, requestId);
  return errorData === undefined ? error : { ...error, data: errorData(refusalIn(thrown), requestId) };
}

function faulty(
  { errorData }: JsonRpcEndpoint,
  { code, message }: ErrorRow,
  detail: string,
  id: Id = null,
): JsonObject {
  const data = errorData?.(new DeputeError(ErrorReason.INVALID_REQUEST, detail), "") ?? { detail };
  return failure(id, { code, message, data });
}

function failure(id: Id, { code, message, data }: RpcError): JsonObject {
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}
