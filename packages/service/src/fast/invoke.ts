import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import type { HandlerContext, Interceptor, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { CallEnd } from "../call-end.ts";
import { callEndKey } from "../call-values.ts";
import type { Call } from "./call.ts";
import { PlainHeaders } from "./plain-headers.ts";
import { PlainValues } from "./plain-values.ts";
import type { AnswerHead } from "./protocol.ts";

type Next = Parameters<Interceptor>[0];

/**
 * Calls a method's implementation through the interceptors, outermost first, as Connect's adapter does.
 *
 * @param head the header and trailer that handler and interceptors write to
 * @throws what the interceptors or the implementation throw
 */
export function invoke(
  call: Call,
  end: CallEnd,
  interceptors: readonly Interceptor[],
  message: Message,
  head: AnswerHead,
): Promise<UnaryResponse> {
  const method = call.method.spec.method as DescMethodUnary;
  const request: UnaryRequest = {
    stream: false,
    method,
    service: method.parent,
    message,
    requestMethod: "POST",
    url: call.url,
    header: PlainHeaders.received(call.headers),
    contextValues: new PlainValues().set(callEndKey, end),
    signal: end.signal,
  };
  let next: Next = (passed) => implement(call, passed as UnaryRequest, head);
  for (let index = interceptors.length - 1; index >= 0; index--) {
    next = (interceptors[index] as Interceptor)(next);
  }
  return next(request) as Promise<UnaryResponse>;
}

/** The innermost step: the handler itself. */
async function implement(call: Call, request: UnaryRequest, head: AnswerHead): Promise<UnaryResponse> {
  const { spec } = call.method;
  const context: HandlerContext = {
    method: spec.method,
    service: request.service,
    requestMethod: "POST",
    protocolName: call.protocol.name,
    url: call.url,
    requestHeader: request.header,
    responseHeader: head.header,
    responseTrailer: head.trailer,
    values: request.contextValues,
    signal: request.signal,
    timeoutMs: () => (call.due === undefined ? undefined : call.due - Date.now()),
  };
  const answer = await spec.impl(request.message, context);
  return {
    stream: false,
    method: request.method as DescMethodUnary,
    service: request.service,
    header: head.header,
    trailer: head.trailer,
    message: create(spec.method.output, answer),
  };
}
