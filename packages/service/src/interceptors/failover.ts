import type { Message } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest, StreamResponse } from "@connectrpc/connect";
import { ErrorReason, isRepeatable } from "@depute/core";
import { reasonOf } from "../errors-on-wire.ts";
import { startingWith } from "../starting-with.ts";
import type { Next } from "./outcome.ts";
import { isPeerGone } from "./peer-gone.ts";

/** The header of a holder proof (RFC 9449). */
const PROOF_HEADER = "dpop";

/**
 * Repeats a call at another replica if the first replica died or drains, unless the call is not repeatable or has a
 * holder proof. A server stream is repeated only before the first message of its response. After that message, the
 * reader must open another stream from its own cursor. A call with a stream of requests is never repeated.
 *
 * @param attempts maximum number of attempts of one call
 */
export function failoverInterceptor(attempts: number): Interceptor {
  return (next) => async (request) => {
    // A holder proof is valid for one call. The first replica may have recorded the proof as used, and another replica
    // would then refuse it. So a call with a proof has no failover.
    if (request.header.has(PROOF_HEADER)) return next(request);
    if (!request.stream)
      return isRepeatable(request.method, request.message)
        ? attempted(attempts, request.signal, () => next(request))
        : next(request);
    if (request.method.methodKind !== "server_streaming") return next(request);
    const messages = await all(request.message);
    const again = () => begun(next, { ...request, message: replay(messages) } as StreamRequest);
    return isRepeatable(request.method, messages[0]) ? attempted(attempts, request.signal, again) : again();
  };
}

async function attempted<T>(attempts: number, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let remaining = attempts - 1; ; remaining--) {
    try {
      return await call();
    } catch (thrown) {
      if (remaining === 0 || !(isPeerGone(thrown, signal) || isDraining(thrown, signal))) throw thrown;
    }
  }
}

function isDraining(thrown: unknown, signal: AbortSignal): boolean {
  return !signal.aborted && reasonOf(thrown) === ErrorReason.SHUTTING_DOWN;
}

/** Opens a stream, and waits for its first message. An error before this message rejects the promise. */
async function begun(next: Next, request: StreamRequest): Promise<StreamResponse> {
  const response = (await next(request)) as StreamResponse;
  const iterator = response.message[Symbol.asyncIterator]();
  const first = await iterator.next();
  return { ...response, message: startingWith(first, iterator) } as StreamResponse;
}

async function all(messages: AsyncIterable<Message>): Promise<Message[]> {
  const list: Message[] = [];
  for await (const message of messages) list.push(message);
  return list;
}

async function* replay(messages: readonly Message[]): AsyncIterable<Message> {
  yield* messages;
}
