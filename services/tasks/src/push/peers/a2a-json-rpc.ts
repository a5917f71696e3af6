import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  SendMessageRequestSchema,
  type StreamResponse,
  StreamResponseSchema,
  TaskSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { isObject, randomUuid } from "@depute/core";
import { faultOfCode } from "../rules/a2a-refusal.ts";
import type { A2aAddress } from "../rules/agent-address.ts";
import type { A2aPeer } from "./a2a-peer.ts";
import { A2A_HEADERS, documentsOf, faultInDetails, messageOf, notA2a } from "./a2a-wire.ts";
import { faultOfStatus, LONGEST_MS, mediaTypeOf, readAll, sendHttp } from "./http-call.ts";
import { CALL_MS, MAX_ANSWER_BYTES, MAX_STREAM_BYTES, type PeerOutbound } from "./peer.ts";

/** Returns a client of an A2A agent over JSON-RPC, with server-sent events for streams. (A2A 9) */
export function a2aJsonRpcPeer(
  outbound: PeerOutbound,
  { url, tenant, streaming }: A2aAddress,
  credentials: Readonly<Record<string, string>>,
): A2aPeer {
  const ofTenant = tenant === "" ? {} : { tenant };

  async function* call(
    method: string,
    params: JsonObject,
    signal: AbortSignal,
    isStream = false,
  ): AsyncGenerator<JsonValue | undefined> {
    const over = new AbortController();
    const answer = await sendHttp(outbound, url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: isStream ? "text/event-stream, application/json" : "application/json",
        ...A2A_HEADERS,
        ...credentials,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: randomUuid(), method, params }),
      signal: AbortSignal.any([signal, over.signal]),
      idleMs: isStream ? LONGEST_MS : CALL_MS,
      maxBytes: isStream ? MAX_STREAM_BYTES : MAX_ANSWER_BYTES,
    });
    try {
      const { status } = answer;
      // Some servers send an HTTP error status together with a JSON-RPC error. So the code reads JSON bodies whatever
      // the status is.
      if (mediaTypeOf(answer) === "text/event-stream" && status === 200) {
        for await (const document of documentsOf(answer)) yield resultOf(document);
      } else if (status === 200 || mediaTypeOf(answer) === "application/json") {
        yield resultOf(await readAll(answer.body), status);
      } else throw faultOfStatus(status);
    } finally {
      over.abort();
    }
  }

  async function one(
    method: string,
    params: JsonObject,
    signal: AbortSignal,
  ): Promise<JsonValue | undefined> {
    for await (const result of call(method, params, signal)) return result;
    throw notA2a("the response has no result");
  }

  async function* stream(
    method: string,
    params: JsonObject,
    signal: AbortSignal,
  ): AsyncGenerator<StreamResponse> {
    for await (const result of call(method, params, signal, true)) {
      yield messageOf(StreamResponseSchema, result);
    }
  }

  return {
    async *send(request, signal) {
      const params = toJson(SendMessageRequestSchema, request) as JsonObject;
      if (streaming) return yield* stream("SendStreamingMessage", params, signal);
      // The response has the same members as a stream element: `task` or `message`.
      yield messageOf(StreamResponseSchema, await one("SendMessage", params, signal));
    },
    subscribe: (id, signal) => stream("SubscribeToTask", { ...ofTenant, id }, signal),
    async get(id, signal) {
      return messageOf(TaskSchema, await one("GetTask", { ...ofTenant, id, historyLength: 0 }, signal));
    },
    async cancel(id, signal) {
      await one("CancelTask", { ...ofTenant, id }, signal);
    },
    close() {},
  };
}

/**
 * Returns the result in a JSON-RPC response.
 *
 * @param status the HTTP status of the response
 * @throws PeerFault for an error, and for a malformed response
 */
function resultOf(answer: JsonValue, status = 200): JsonValue | undefined {
  const { error = null, result } = isObject(answer) ? answer : { error: undefined, result: undefined };
  if (isObject(error) && Number.isSafeInteger(error.code)) {
    const message = typeof error.message === "string" ? error.message : "";
    throw faultInDetails(error.data, message) ?? faultOfCode(Number(error.code), message);
  }
  if (status !== 200) throw faultOfStatus(status);
  if (!isObject(answer) || error !== null) throw notA2a("the response is not JSON-RPC");
  return result as JsonValue | undefined;
}
