import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import {
  ContextRequestSchema,
  DelegateRequestSchema,
  InvokeRequestSchema,
  TaskCancelRequestSchema,
  TaskResumeRequestSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, isObject, newId } from "@depute/core";
import type { OutboundAnswer } from "@depute/service";
import { encode } from "@depute/wire";
import type { Endpoint } from "../rules/endpoint.ts";
import { type Numbered, type PeerEvent, readPeerEvent } from "../rules/peer-event.ts";
import {
  MALFORMED,
  NOT_ALLOWED,
  PeerFault,
  REFUSED,
  refusalOf,
  TOO_MUCH,
  UNREACHABLE,
} from "../rules/refusal.ts";
import { readServerSentEvents } from "../rules/sse.ts";
import {
  CALL_MS,
  MAX_ANSWER_BYTES,
  MAX_STREAM_BYTES,
  type Peer,
  type PeerOutbound,
  readAnswer,
} from "./peer.ts";

/** Node's timers take no longer time. */
const LONGEST_MS = 2 ** 31 - 1;

/** NEKTE over HTTP: JSON-RPC, and server-sent events for delegated work. */
export function httpPeer(
  { streams, calls }: PeerOutbound,
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
    const body = JSON.stringify({ jsonrpc: "2.0", method, id: newId(), params });
    // One more than is taken: what is longer is told apart from what breaks off.
    const answer = await sent(
      (limits.idleMs === LONGEST_MS ? streams : calls).send(url, {
        ...limits,
        signal: AbortSignal.any([signal, over.signal]),
        maxBytes: limits.maxBytes + 1,
        method: "POST",
        headers: { "content-type": "application/json", ...credentials, ...headers },
        body,
      }),
    );
    if (answer.status >= 200 && answer.status < 300) return answer;
    // What else it says is not waited for.
    over.abort();
    throw ofStatus(answer.status);
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
    return resultOf(await whole(answer.body)) ?? null;
  }

  return {
    async invoke(request, signal) {
      const result = await call("nekte.invoke", InvokeRequestSchema, request, signal, LONGEST_MS);
      if (!isObject(result) || !Object.hasOwn(result, "out")) throw malformed("a result without an output");
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
      const type = String(answer.headers["content-type"] ?? "")
        .split(";", 1)[0]
        ?.trim()
        .toLowerCase();
      if (type !== "text/event-stream") {
        yield { event: endOf(resultOf(await whole(answer.body)), taskId), id: undefined };
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
      const result = resultOf(await whole(answer.body));
      if (!isObject(result) || typeof result.status !== "string") throw malformed("no status");
      if (result.task_id !== taskId) throw malformed("the status of another task");
      return result.status;
    },

    close() {},
  };
}

/** How work went, as a server tells that does not stream: NEKTE's library answers so where nobody handles delegations. */
function endOf(result: JsonValue | undefined, taskId: string): PeerEvent {
  if (!isObject(result)) throw malformed("an answer that is no stream of events");
  const { status, error } = result;
  if (status === "completed") return readPeerEvent("complete", result as JsonValue, taskId);
  if (status !== "failed") throw malformed("an answer that is no stream of events");
  const message = isObject(error) && typeof error.message === "string" ? error.message : "";
  return readPeerEvent("error", { message }, taskId);
}

/** An id that can stand in a header, and is of a length that can be kept. */
function usable(id: string | undefined): string | undefined {
  return id !== undefined && /^[!-~]{1,128}$/.test(id) ? id : undefined;
}

/** The result of a JSON-RPC answer. @throws PeerFault for an error, and for what is no answer */
function resultOf(answer: JsonValue): JsonValue | undefined {
  if (!isObject(answer)) throw malformed("an answer that is no object");
  const { error, result } = answer;
  if (error === undefined || error === null) return result as JsonValue | undefined;
  if (!isObject(error) || !Number.isSafeInteger(error.code)) throw malformed("an error without a code");
  const code = Number(error.code);
  const detail = isObject(error.data) && typeof error.data.detail === "string" ? error.data.detail : "";
  const message = detail || (typeof error.message === "string" ? error.message : "");
  throw new PeerFault(refusalOf(code), message || `the endpoint refused: ${code}`, {
    code,
    data: error.data,
  });
}

function ofStatus(status: number): PeerFault {
  const mayPass = status >= 500 || status === 408 || status === 425 || status === 429;
  return new PeerFault(mayPass ? UNREACHABLE : REFUSED, `the endpoint answered with HTTP status ${status}`);
}

async function sent(answer: Promise<OutboundAnswer>): Promise<OutboundAnswer> {
  try {
    return await answer;
  } catch (thrown) {
    throw unreachable(thrown);
  }
}

async function whole(body: AsyncIterable<Uint8Array>): Promise<JsonValue> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of pieces(body, MAX_ANSWER_BYTES)) chunks.push(chunk);
  return readAnswer(Buffer.concat(chunks));
}

async function* pieces(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let length = 0;
  try {
    for await (const chunk of body) {
      length += chunk.length;
      if (length > maxBytes) throw new PeerFault(TOO_MUCH, "the endpoint sent more than is taken");
      yield chunk;
    }
  } catch (thrown) {
    throw unreachable(thrown);
  }
}

/** What went wrong between here and there. Text of the system says which host and port, and no more. */
function unreachable(thrown: unknown): unknown {
  if (thrown instanceof PeerFault) return thrown;
  if (thrown instanceof DeputeError) return new PeerFault(NOT_ALLOWED, thrown.message);
  const why = thrown instanceof Error ? thrown.message : "no answer";
  return new PeerFault(UNREACHABLE, `the endpoint cannot be reached: ${why}`);
}

function malformed(what: string): PeerFault {
  return new PeerFault(MALFORMED, `the endpoint does not speak NEKTE: ${what}`);
}
