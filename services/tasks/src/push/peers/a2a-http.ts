import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  SendMessageRequestSchema,
  type StreamResponse,
  StreamResponseSchema,
  TaskSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { isObject } from "@depute/core";
import type { OutboundAnswer } from "@depute/service";
import type { A2aAddress } from "../rules/agent-address.ts";
import type { PeerFault } from "../rules/refusal.ts";
import type { A2aPeer } from "./a2a-peer.ts";
import { A2A_HEADERS, documentsOf, faultInDetails, messageOf } from "./a2a-wire.ts";
import { faultOfStatus, LONGEST_MS, mediaTypeOf, readAll, sendHttp } from "./http-call.ts";
import { CALL_MS, MAX_ANSWER_BYTES, MAX_STREAM_BYTES, type PeerOutbound } from "./peer.ts";

/** The media type of A2A's HTTP+JSON binding. (A2A 11.1) */
const A2A_JSON = "application/a2a+json";

interface HttpCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: JsonObject;
  readonly isStream?: boolean;
  readonly signal: AbortSignal;
}

/** Returns a client of an A2A agent over HTTP+JSON, with server-sent events for streams. (A2A 11) */
export function a2aHttpPeer(
  outbound: PeerOutbound,
  { url, tenant, streaming }: A2aAddress,
  credentials: Readonly<Record<string, string>>,
): A2aPeer {
  const base = `${url.replace(/\/+$/, "")}${tenant === "" ? "" : `/${encodeURIComponent(tenant)}`}`;
  const taskPath = (id: string) => `/tasks/${encodeURIComponent(id)}`;

  async function* call({
    method,
    path,
    body,
    isStream = false,
    signal,
  }: HttpCall): AsyncGenerator<JsonValue> {
    const over = new AbortController();
    const answer = await sendHttp(outbound, `${base}${path}`, {
      method,
      headers: {
        accept: isStream ? `text/event-stream, ${A2A_JSON}` : `${A2A_JSON}, application/json`,
        ...(body === undefined ? {} : { "content-type": A2A_JSON }),
        ...A2A_HEADERS,
        ...credentials,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, over.signal]),
      idleMs: isStream ? LONGEST_MS : CALL_MS,
      maxBytes: isStream ? MAX_STREAM_BYTES : MAX_ANSWER_BYTES,
    });
    try {
      if (answer.status < 200 || answer.status > 299) throw await faultOf(answer);
      if (mediaTypeOf(answer) !== "text/event-stream") yield await readAll(answer.body);
      else for await (const document of documentsOf(answer)) yield elementOf(document);
    } finally {
      over.abort();
    }
  }

  async function one(httpCall: HttpCall): Promise<JsonValue | undefined> {
    for await (const document of call(httpCall)) return document;
    return undefined;
  }

  async function* stream(httpCall: HttpCall): AsyncGenerator<StreamResponse> {
    for await (const document of call({ ...httpCall, isStream: true })) {
      yield messageOf(StreamResponseSchema, document);
    }
  }

  return {
    async *send(request, signal) {
      const { tenant: _, ...body } = toJson(SendMessageRequestSchema, request) as JsonObject;
      if (streaming) return yield* stream({ method: "POST", path: "/message:stream", body, signal });
      // The response has the same members as a stream element: `task` or `message`.
      const answer = await one({ method: "POST", path: "/message:send", body, signal });
      yield messageOf(StreamResponseSchema, answer);
    },
    // For this call, A2A's specification text states POST, but A2A's proto file states GET. The published SDKs serve
    // POST, so the platform sends POST.
    subscribe: (id, signal) => stream({ method: "POST", path: `${taskPath(id)}:subscribe`, signal }),
    async get(id, signal) {
      return messageOf(
        TaskSchema,
        await one({ method: "GET", path: `${taskPath(id)}?historyLength=0`, signal }),
      );
    },
    async cancel(id, signal) {
      await one({ method: "POST", path: `${taskPath(id)}:cancel`, body: {}, signal });
    },
    close() {},
  };
}

/**
 * Returns an element of a stream, or throws the error that the element contains. A failed stream ends with an error in
 * the form of A2A's other HTTP errors. (A2A 11.7)
 */
function elementOf(document: JsonValue): JsonValue {
  const fault = isObject(document) ? faultIn(document, 500) : undefined;
  if (fault !== undefined) throw fault;
  return document;
}

/** Reads the error of a refused call: a google.rpc.Status under `error`. (A2A 11.6) */
async function faultOf(answer: OutboundAnswer): Promise<PeerFault> {
  const { status } = answer;
  const isJson = [A2A_JSON, "application/json"].includes(mediaTypeOf(answer));
  const body = isJson ? await readAll(answer.body).catch(() => undefined) : undefined;
  return (isObject(body) ? faultIn(body, status) : undefined) ?? faultOfStatus(status);
}

function faultIn({ error }: Record<string, unknown>, status: number): PeerFault | undefined {
  if (!isObject(error)) return undefined;
  const message = typeof error.message === "string" ? error.message : "";
  return faultInDetails(error.details, message) ?? faultOfStatus(Number(error.code) || status);
}
