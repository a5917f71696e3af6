import { create, type DescMethodStreaming, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextKey,
  type ContextValues,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { CallEnd } from "../call-end.ts";
import { callEndKey } from "../call-end.ts";
import { answerCheckedKey, clientAddressKey, clientCertificateKey, messageSizesKey } from "../call-values.ts";
import type { AnswerHead, Call } from "./call.ts";
import type { ServerStreamSpec, UnarySpec } from "./methods.ts";
import { PlainHeaders, PlainValues } from "./plain-values.ts";

type Next = Parameters<Interceptor>[0];

/**
 * The steps of a server's calls: through all interceptors, outermost first, to the method's implementation. A server
 * builds both chains once, and not for each call.
 */
export interface Chains {
  readonly unary: Next;
  readonly stream: Next;
}

export function chainsOf(interceptors: readonly Interceptor[]): Chains {
  return {
    unary: through(interceptors, (request) => implement(request as UnaryRequest)),
    stream: through(interceptors, (request) => implementStream(request as StreamRequest)),
  };
}

/** The call whose request passes through a chain. */
interface InChain {
  readonly call: Call;
  /** The header and trailer that handler and interceptors write to. */
  readonly head: AnswerHead;
}

const inChainKey: ContextKey<InChain | undefined> = createContextKey<InChain | undefined>(undefined, {
  description: "call of a chain",
});

/**
 * Calls a method's implementation through the interceptors, outermost first, like Connect's adapter.
 *
 * @param head the header and trailer that handler and interceptors write to
 * @throws the errors of the interceptors or the implementation
 */
export function invoke(
  call: Call,
  end: CallEnd,
  chain: Next,
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
    contextValues: valuesOf(call, head).set(callEndKey, end).set(answerCheckedKey, true),
    signal: end.signal,
  };
  return chain(request) as Promise<UnaryResponse>;
}

/**
 * Does the same as `invoke`, for a method whose response is a stream.
 *
 * @throws the errors of the interceptors, and ConnectError UNIMPLEMENTED if they pass on no request message. The
 * response's stream throws the errors that the implementation raises while it yields messages
 */
export function invokeStream(
  call: Call,
  end: CallEnd,
  chain: Next,
  message: Message,
  head: AnswerHead,
): Promise<StreamResponse> {
  const method = call.method.spec.method as DescMethodStreaming;
  const request: StreamRequest = {
    stream: true,
    method,
    service: method.parent,
    message: once(message) as StreamRequest["message"],
    requestMethod: "POST",
    url: call.url,
    header: PlainHeaders.received(call.headers),
    contextValues: valuesOf(call, head),
    signal: end.signal,
  };
  return chain(request) as Promise<StreamResponse>;
}

function valuesOf(call: Call, head: AnswerHead): ContextValues {
  const { certificate, address, sizes } = call;
  const values = new PlainValues()
    .set(inChainKey, { call, head })
    .set(clientAddressKey, address)
    .set(messageSizesKey, sizes);
  return certificate === undefined ? values : values.set(clientCertificateKey, certificate);
}

function through(interceptors: readonly Interceptor[], innermost: Next): Next {
  let next = innermost;
  for (let index = interceptors.length - 1; index >= 0; index--) {
    next = (interceptors[index] as Interceptor)(next);
  }
  return next;
}

/** @throws Error if an interceptor replaced the values of the call */
function inChain({ contextValues }: UnaryRequest | StreamRequest): InChain {
  const found = contextValues.get(inChainKey);
  if (found === undefined) throw new Error("an interceptor dropped the values of a call");
  return found;
}

async function* once<T>(item: T): AsyncIterable<T> {
  yield item;
}

/** Calls the method's implementation: the innermost step, inside all interceptors. */
async function implement(request: UnaryRequest): Promise<UnaryResponse> {
  const { call, head } = inChain(request);
  const spec = call.method.spec as UnarySpec;
  const answer = await spec.impl(request.message, contextOf(call, request, head));
  return {
    stream: false,
    method: request.method as DescMethodUnary,
    service: request.service,
    header: head.header,
    trailer: head.trailer,
    message: create(spec.method.output, answer),
  };
}

async function implementStream(request: StreamRequest): Promise<StreamResponse> {
  const { call, head } = inChain(request);
  const spec = call.method.spec as ServerStreamSpec;
  // The interceptors pass on a stream with one request message, which is read here.
  const { value, done } = await request.message[Symbol.asyncIterator]().next();
  if (done === true) throw new ConnectError("missing input message", Code.Unimplemented);
  const answers = spec.impl(value, contextOf(call, request, head));
  return {
    stream: true,
    method: request.method as DescMethodStreaming,
    service: request.service,
    header: head.header,
    trailer: head.trailer,
    message: answers as StreamResponse["message"],
  };
}

function contextOf(call: Call, request: UnaryRequest | StreamRequest, head: AnswerHead): HandlerContext {
  return {
    method: call.method.spec.method,
    service: request.service,
    requestMethod: "POST",
    protocolName: call.protocol.name,
    url: call.url,
    requestHeader: request.header,
    responseHeader: head.header,
    responseTrailer: head.trailer,
    values: request.contextValues,
    signal: request.signal,
    timeoutMs: () => (call.due === undefined ? undefined : call.due - call.clock.now()),
  };
}
