import type { Message } from "@bufbuild/protobuf";
import { ConnectError, type Interceptor, type StreamRequest, type StreamResponse } from "@connectrpc/connect";
import { ErrorReason, isRefusedStream, isRepeatable } from "@depute/core";
import { reasonOf } from "../errors-on-wire.ts";
import { startingWith } from "../starting-with.ts";
import type { Next } from "./outcome.ts";
import { isPeerGone } from "./peer-gone.ts";

/** The header of a holder proof (RFC 9449). */
const PROOF_HEADER = "dpop";

/**
 * Repeats failed calls where a repetition has no second effect. A server refuses calls that arrive while it closes an old
 * connection or drains. It has not processed them, so every such call is repeated. With several replicas, a call is also
 * repeated if its replica died or drains, unless the call is not repeatable or has a holder proof.
 *
 * A server stream is repeated only before the first message of its response. After that message, the reader must open
 * another stream from its own cursor. A call with a stream of requests is never repeated.
 *
 * @param replicas number of replicas of the called service
 */
export function failoverInterceptor(replicas: number): Interceptor {
  // Concurrent calls share the round-robin order, so a call may meet a replica twice. One attempt more than the number
  // of replicas is therefore allowed.
  const attempts = replicas + 1;
  return (next) => async (request) => {
    const { method, signal } = request;
    // A holder proof is valid for one call. The first replica may have recorded the proof as used, and another replica
    // would then refuse it. So a call with a proof has no failover.
    const hasFailover = replicas > 1 && !request.header.has(PROOF_HEADER);
    const isGone = (thrown: unknown) => isPeerGone(thrown, signal) || isDraining(thrown, signal);
    const mayRepeat = (message: Message | undefined) => {
      const isFailover = hasFailover && isRepeatable(method, message);
      return (thrown: unknown) => isRefused(thrown, signal) || (isFailover && isGone(thrown));
    };
    if (!request.stream) return attempted(attempts, () => next(request), mayRepeat(request.message));
    if (method.methodKind !== "server_streaming") return next(request);
    const messages = await all(request.message);
    const replayed = () => ({ ...request, message: replay(messages) }) as StreamRequest;
    const open = hasFailover ? () => begun(next, replayed()) : () => next(replayed());
    return attempted(attempts, open, mayRepeat(messages[0]));
  };
}

async function attempted<T>(
  attempts: number,
  call: () => Promise<T>,
  mayRepeat: (thrown: unknown) => boolean,
): Promise<T> {
  for (let remaining = attempts - 1; ; remaining--) {
    try {
      return await call();
    } catch (thrown) {
      if (remaining === 0 || !mayRepeat(thrown)) throw thrown;
    }
  }
}

/** Whether the server has refused the call's stream, and so has not processed the call. */
function isRefused(thrown: unknown, signal: AbortSignal): boolean {
  return thrown instanceof ConnectError && isPeerGone(thrown, signal) && isRefusedStream(thrown);
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
