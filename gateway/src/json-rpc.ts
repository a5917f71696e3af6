import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { type JsonRpcRequest, JsonRpcRequestSchema } from "@depute/contracts/depute/wire/v1/jsonrpc_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { decodeValid, parseJson, refusalOf, type WireError } from "@depute/wire";
import { type ErrorTable, rowOf } from "./error-table.ts";
import { type RpcError, toRpcError } from "./fault.ts";
import { type ErrorRow, JSON_RPC } from "./own-codes.ts";
import type { SseEvent } from "./sse.ts";
import type { WireCall } from "./wire-call.ts";

/** The most calls in one batch. */
export const MAX_BATCH = 20;
/** Levels of nesting beyond those of the parameters: the batch, the call. */
const ENVELOPE_DEPTH = 2;
/** The deepest that parameters may nest. */
const PARAMS_DEPTH = 40;

/** A result that is a stream of events. It has begun: what follows is told by events. */
export class EventStream {
  readonly events: AsyncGenerator<SseEvent, void, undefined>;

  constructor(events: AsyncGenerator<SseEvent, void, undefined>) {
    this.events = events;
  }
}

/** A method of an endpoint: from its parameters to its result. What it throws becomes the call's error. */
export type JsonRpcMethod = (params: unknown, call: WireCall) => Promise<JsonValue | EventStream>;

/** What answers at one address. */
export interface JsonRpcEndpoint {
  readonly methods: ReadonlyMap<string, JsonRpcMethod>;
  readonly errors: ErrorTable;
  /** Methods whose result is a stream: they cannot be part of a batch. */
  readonly streaming?: ReadonlySet<string>;
  /** Whether members of a call that JSON-RPC does not know are ignored; refused otherwise. */
  readonly ignoresUnknown?: boolean;
  /** Methods that are known and do not exist yet, with what is missing. */
  readonly missing?: ReadonlyMap<string, string>;
}

/** How a call went, for the log. */
export interface CallNote {
  readonly method: string;
  /** The code of its error; 0 for none. */
  readonly code: number;
  /** What was thrown. */
  readonly thrown?: unknown;
}

/** What a body is answered with. */
export type Answer =
  | { readonly kind: "json"; readonly body: JsonValue; readonly unauthenticated: boolean }
  | { readonly kind: "events"; readonly events: EventStream["events"] }
  /** Notifications get no answer. */
  | { readonly kind: "nothing"; readonly unauthenticated: boolean };

/** The answer to one call; `body` is undefined for a notification. */
interface Reply {
  readonly body?: JsonObject | EventStream;
  readonly unauthenticated: boolean;
}

/**
 * Answers the body of a JSON-RPC 2.0 request: one call, or a batch of them.
 *
 * A batch is worked off in its order, one call after the other. Throws nothing.
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
    return json(faulty(isDeep ? JSON_RPC.INVALID_REQUEST : JSON_RPC.PARSE_ERROR, parsed.error.message));
  }
  if (!Array.isArray(parsed.value)) {
    const { body: reply, unauthenticated } = await answerOne(endpoint, parsed.value, call, note, true);
    if (reply instanceof EventStream) return { kind: "events", events: reply.events };
    return reply === undefined ? { kind: "nothing", unauthenticated } : json(reply, unauthenticated);
  }
  if (parsed.value.length === 0) return json(faulty(JSON_RPC.INVALID_REQUEST, "the batch is empty"));
  if (parsed.value.length > MAX_BATCH) {
    return json(faulty(JSON_RPC.INVALID_REQUEST, `a batch has at most ${MAX_BATCH} calls`));
  }
  const replies: JsonValue[] = [];
  for (const element of parsed.value) {
    const { body: reply } = await answerOne(endpoint, element, call, note, false);
    if (reply !== undefined && !(reply instanceof EventStream)) replies.push(reply);
  }
  return replies.length === 0 ? { kind: "nothing", unauthenticated: false } : json(replies);
}

async function answerOne(
  endpoint: JsonRpcEndpoint,
  element: JsonValue,
  call: WireCall,
  note: (note: CallNote) => void,
  mayStream: boolean,
): Promise<Reply> {
  const envelope = readEnvelope(element, endpoint.ignoresUnknown === true);
  if (!envelope.ok) {
    note({ method: "", code: JSON_RPC.INVALID_REQUEST.code });
    return { body: faulty(JSON_RPC.INVALID_REQUEST, envelope.detail, envelope.id), unauthenticated: false };
  }
  const { id, method, params } = envelope;
  if (!mayStream && endpoint.streaming?.has(method) === true) {
    note({ method, code: JSON_RPC.INVALID_REQUEST.code });
    const reply = faulty(JSON_RPC.INVALID_REQUEST, `${method} streams, and a batch cannot`, id ?? null);
    return { ...(id === undefined ? {} : { body: reply }), unauthenticated: false };
  }
  try {
    const result = await methodOf(endpoint, method)(params, call);
    note({ method, code: 0 });
    if (!(result instanceof EventStream)) {
      return id === undefined
        ? { unauthenticated: false }
        : { body: { jsonrpc: "2.0", id, result }, unauthenticated: false };
    }
    if (id !== undefined) return { body: result, unauthenticated: false };
    // A notification's work goes on without anybody who watches.
    await result.events.return();
    return { unauthenticated: false };
  } catch (thrown) {
    const error = toRpcError(endpoint.errors, thrown, call.requestId);
    note({ method, code: error.code, thrown });
    const unauthenticated = error.code === rowOf(endpoint.errors, ErrorReason.UNAUTHENTICATED).code;
    return id === undefined ? { unauthenticated } : { body: failure(id, error), unauthenticated };
  }
}

type Id = string | number | null;

type Envelope =
  /** Without an id it is a notification. */
  { ok: true; id: Id | undefined; method: string; params: unknown } | { ok: false; id: Id; detail: string };

/** Reads a call's envelope by its contract. The parameters are left as they are: they have contracts of their own. */
function readEnvelope(element: JsonValue, ignoresUnknown: boolean): Envelope {
  if (typeof element !== "object" || element === null || Array.isArray(element)) {
    return { ok: false, id: null, detail: "a call is an object" };
  }
  const { params, ...others } = element;
  const rest = ignoresUnknown ? known(others) : others;
  const read = decodeValid(JsonRpcRequestSchema, rest);
  if (!read.ok) return { ok: false, id: plainId(rest.id), detail: sentence(read.errors) };
  if (params !== undefined && (typeof params !== "object" || params === null)) {
    return { ok: false, id: plainId(rest.id), detail: "/params: an object or an array is wanted" };
  }
  return { ok: true, id: idOf(read.message), method: read.message.method, params };
}

/** The members of a call that JSON-RPC knows. (JSON-RPC 2.0 section 4) */
function known(call: JsonObject): JsonObject {
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

/** The id of a call that cannot be read, so that its sender may know which one it was. */
function plainId(id: unknown): Id {
  return typeof id === "number" || (typeof id === "string" && id.length <= 256) ? id : null;
}

function methodOf({ methods, missing }: JsonRpcEndpoint, method: string): JsonRpcMethod {
  const known = methods.get(method);
  if (known !== undefined) return known;
  const lacking = missing?.get(method);
  const detail = lacking === undefined ? "no such method here" : `${method} does not exist yet: ${lacking}`;
  throw new DeputeError(ErrorReason.UNKNOWN_METHOD, detail, { metadata: { method } });
}

/**
 * The message of a call's parameters.
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

function faulty({ code, message }: ErrorRow, detail: string, id: Id = null): JsonObject {
  return failure(id, { code, message, data: { detail } });
}

function failure(id: Id, { code, message, data }: RpcError): JsonObject {
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}
