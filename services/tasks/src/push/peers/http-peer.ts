import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import {
  ContextRequestSchema,
  DelegateRequestSchema,
  InvokeRequestSchema,
  TaskCancelRequestSchema,
  TaskResumeRequestSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { isObject, randomUuid } from "@depute/core";
import type { OutboundAnswer } from "@depute/service";
import { encode } from "@depute/wire";
import type { Endpoint } from "../rules/endpoint.ts";
import { type Numbered, type PeerEvent, readPeerEvent } from "../rules/peer-event.ts";
import { MALFORMED, PeerFault, refusalOf } from "../rules/refusal.ts";
import { readServerSentEvents } from "../rules/sse.ts";
import { faultOfStatus, LONGEST_MS, mediaTypeOf, pieces, readAll, sendHttp } from "./http-call.ts";
import {
  CALL_MS,
  MAX_ANSWER_BYTES,
  MAX_STREAM_BYTES,
  type Peer,
  type PeerOutbound,
  readAnswer,
} from "./peer.ts";

/** Returns a client of a NEKTE server over HTTP: JSON-RPC, with server-sent events for delegated work. */
export function httpPeer(
  outbound: PeerOutbound,
  { url }: Endpoint,
  credentials: Readonly<Record<string, string>>,
): Peer {
  async function post(
    method: string,
    params: JsonValue,
    more: { headers?: Record<string, string>; idleMs: number; maxBytes: number; signal: AbortSignal },
  ): Promise<OutboundAnswer> {
    const { headers = {}, signal, ...limits } = more;
    const over = new AbortController();
    const body = JSON.stringify({ jsonrpc: "2.0", method, id: randomUuid(), params });
    const answer = await sendHttp(outbound, url, {
      ...limits,
      signal: AbortSignal.any([signal, over.signal]),
      method: "POST",
      headers: { "content-type": "application/json", ...credentials, ...headers },
      body,
    });
    if (answer.status >= 200 && answer.status < 300) return answer;
    // Aborts the request, because this code does not need the rest of the response.
    over.abort();
    throw faultOfStatus(answer.status);
  }

  async function call<Desc extends DescMessage>(
    method: string,
    schema: Desc,
    params: MessageShape<Desc>,
    signal: AbortSignal,
    idleMs = CALL_MS,
  ): Promise<JsonValue> {
    const limits = { signal, idleMs, maxBytes: MAX_ANSWER_BYTES };
    const answer = await post(method, encode(schema, params), limits);
    return resultOf(await readAll(answer.body)) ?? null;
  }

  return {
    async invoke(request, signal) {
      const result = await call("nekte.invoke", InvokeRequestSchema, request, signal, LONGEST_MS);
      if (!isObject(result) || !Object.hasOwn(result, "out")) throw malformed("the result has no output");
      const meta = isObject(result.meta) ? result.meta : {};
      return {
        output: (result.out ?? null) as JsonValue,
        level: typeof result.resolved_level === "string" ? result.resolved_level : "",
        tokensUsed: Number.isSafeInteger(meta.tokens_used) ? Math.max(0, Number(meta.tokens_used)) : 0,
      };
    },

    async *delegate(request, after, signal) {
      const taskId = request.task?.id ?? "";
      const headers = {
        accept: "text/event-stream, application/json",
        ...(after === undefined ? {} : { "last-event-id": after }),
      };
      const limits = { headers, signal, idleMs: LONGEST_MS, maxBytes: MAX_STREAM_BYTES };
      const answer = await post("nekte.delegate", encode(DelegateRequestSchema, request), limits);
      if (mediaTypeOf(answer) !== "text/event-stream") {
        yield { event: endOf(resultOf(await readAll(answer.body)), taskId), id: undefined };
        return;
      }
      for await (const { event, data, id } of readServerSentEvents(pieces(answer.body, MAX_STREAM_BYTES))) {
        yield { event: readPeerEvent(event, readAnswer(data), taskId), id: usable(id) } satisfies Numbered;
      }
    },

    async share(request, signal) {
      await call("nekte.context", ContextRequestSchema, request, signal);
    },

    async cancel(request, signal) {
      await call("nekte.task.cancel", TaskCancelRequestSchema, request, signal);
    },

    async resume(request, signal) {
      await call("nekte.task.resume", TaskResumeRequestSchema, request, signal);
    },

    async status(taskId, signal) {
      const limits = { signal, idleMs: CALL_MS, maxBytes: MAX_ANSWER_BYTES };
      const answer = await post("nekte.task.status", { task_id: taskId }, limits);
      const result = resultOf(await readAll(answer.body));
      if (!isObject(result) || typeof result.status !== "string")
        throw malformed("the response has no status");
      if (result.task_id !== taskId) throw malformed("the status is about another task");
      return result.status;
    },

    close() {},
  };
}

/**
 * Reads the end of a task from a single JSON response. Servers that use NEKTE's library send no stream if they have no
 * handler for delegated tasks.
 */
function endOf(result: JsonValue | undefined, taskId: string): PeerEvent {
  if (!isObject(result)) throw malformed("the response is not a stream of events");
  const { status, error } = result;
  if (status === "completed") return readPeerEvent("complete", result as JsonValue, taskId);
  if (status !== "failed") throw malformed("the response is not a stream of events");
  const message = isObject(error) && typeof error.message === "string" ? error.message : "";
  return readPeerEvent("error", { message }, taskId);
}

/** Returns the event id if a header can carry it and it has at most 128 characters; otherwise undefined. */
function usable(id: string | undefined): string | undefined {
  return id !== undefined && /^[!-~]{1,128}$/.test(id) ? id : undefined;
}

/**
 * Returns the result in a JSON-RPC response.
 *
 * @throws PeerFault for an error, and for a malformed response
 */
function resultOf(answer: JsonValue): JsonValue | undefined {
  if (!isObject(answer)) throw malformed("the response is not an object");
  const { error, result } = answer;
  if (error === undefined || error === null) return result as JsonValue | undefined;
  if (!isObject(error) || !Number.isSafeInteger(error.code)) throw malformed("the error has no code");
  const code = Number(error.code);
  const detail = isObject(error.data) && typeof error.data.detail === "string" ? error.data.detail : "";
  const message = detail || (typeof error.message === "string" ? error.message : "");
  throw new PeerFault(refusalOf(code), message || `the endpoint refused the call with code ${code}`, {
    code,
    data: error.data,
  });
}

function malformed(problem: string): PeerFault {
  return new PeerFault(MALFORMED, `the endpoint does not conform to NEKTE: ${problem}`);
}
