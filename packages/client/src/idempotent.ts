import { clone, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { isRepeatable } from "@depute/core";
import { Attempts } from "./outage.ts";

type MessageWithId = Message & { requestId: string };

/** Adds a request id to each call that has none, so that the platform recognizes a repeated call. */
export const withRequestId: Interceptor = (next) => (request) => {
  const { input } = request.method;
  if (!input.fields.some(({ localName }) => localName === "requestId")) return next(request);
  if (!request.stream) return next({ ...request, message: filled(input, request.message) } as UnaryRequest);
  return next({ ...request, message: allFilled(input, request.message) } as StreamRequest);
};

function filled(input: DescMessage, message: Message): Message {
  if ((message as MessageWithId).requestId !== "") return message;
  // Changes a copy, because the program that makes the call may still use the message.
  return Object.assign(clone(input, message), { requestId: crypto.randomUUID() });
}

async function* allFilled(input: DescMessage, messages: AsyncIterable<Message>): AsyncIterable<Message> {
  for await (const message of messages) yield filled(input, message);
}

/**
 * Repeats unary calls while the platform is unreachable. The interceptors after this interceptor run again for each
 * attempt, so each attempt has a new proof. A call is not repeated if the platform could not recognize the
 * repetition.
 *
 * @param maxOutageMs maximum outage to wait for, in milliseconds; with 0 no call is repeated
 */
export function retrying(maxOutageMs: number): Interceptor {
  return (next) => async (request) => {
    if (request.stream || !isRepeatable(request.method, request.message)) return next(request);
    const attempts = new Attempts(maxOutageMs);
    for (;;) {
      try {
        return await next(request);
      } catch (error) {
        await attempts.failed(error, request.signal);
      }
    }
  };
}
