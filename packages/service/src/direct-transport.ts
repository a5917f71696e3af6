import { create, type DescMethod, type DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextValues,
  createHandlerContext,
  createMethodImplSpec,
  createServiceImplSpec,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { runStreamingCall, transformInvokeImplementation } from "@connectrpc/connect/protocol";
import type { Clock, Timers } from "@depute/core";
import { iterateUntilAborted } from "./aborts.ts";
import { CallEnd, callEndKey } from "./call-end.ts";
import { inProcessKey } from "./call-values.ts";
import { toConnectError } from "./errors-on-wire.ts";
import { PlainHeaders, PlainValues } from "./fast/plain-values.ts";
import { unavailable } from "./interceptors/client.ts";
import { startingWith } from "./starting-with.ts";

/**
 * Creates a transport to a service of this process that may start later. Until the service starts, calls fail with
 * UNAVAILABLE.
 */
export function createLateTransport<Name extends string>(
  service: Name,
  started: ReadonlyMap<Name, Transport>,
): Transport {
  const absent = () => Promise.reject(unavailable(service));
  return {
    unary: (...call) => started.get(service)?.unary(...call) ?? absent(),
    stream: (...call) => started.get(service)?.stream(...call) ?? absent(),
  };
}

type Next = Parameters<Interceptor>[0];

export interface DirectTransportOptions {
  /** The clock and the timers that limit the time of calls and streams. */
  readonly clock: Clock;
  readonly timers: Timers;
  /** Registers the implementations of the services. */
  routes: (router: ConnectRouter) => void;
  /** Interceptors on the server's side, outermost first: the same as over a socket. */
  interceptors?: Interceptor[];
  /** Interceptors on the client's side, outermost first. */
  clientInterceptors?: Interceptor[];
}

type RequestCommon = Omit<UnaryRequest, "stream" | "message" | "method">;
type Specs = Map<DescMethod, MethodImplSpec>;

/**
 * Creates a client transport that calls implementations in this process, without socket or codec. A call behaves as
 * over a socket: it has the same interceptors in the same order, headers, trailers, deadlines, aborts and errors. The
 * server's side has separate context values. Unlike over a socket, messages are not copied, so neither side may change
 * a message after the call.
 */
export function createDirectTransport(options: DirectTransportOptions): Transport {
  const { interceptors = [], clientInterceptors = [], clock, timers } = options;
  const specs = collectSpecs(options.routes);
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const end = new CallEnd({ timeoutMs: limitOf(timeoutMs), timers });
      const onAbort = () => end.abort(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      let next: Next = async (request) => {
        const arrived = request as UnaryRequest;
        const spec = specOf(specs, method);
        const context = unaryContext(arrived, timeoutMs, end, clock);
        try {
          if (spec.kind !== "unary") throw new ConnectError("not a unary method", Code.Internal);
          return await end.race(served(spec, context, arrived, interceptors));
        } catch (thrown) {
          throw asReceived(thrown, context);
        }
      };
      for (const interceptor of clientInterceptors.toReversed()) next = interceptor(next);
      const request: UnaryRequest = {
        ...requestOf(method, header, timeoutMs, contextValues),
        stream: false,
        method,
        message: create(method.input, input as never),
        signal: end.signal,
      };
      try {
        return (await next(request)) as never;
      } catch (thrown) {
        const { aborted, reason } = end.signal;
        throw aborted ? ConnectError.from(reason, Code.Canceled) : ConnectError.from(thrown);
      } finally {
        // After this, nothing aborts the handler's signal: the call has ended for its caller.
        end.settle();
        signal?.removeEventListener("abort", onAbort);
      }
    },

    stream(method, signal, timeoutMs, header, input, contextValues) {
      const end = new CallEnd({ timeoutMs: limitOf(timeoutMs), timers });
      const onAbort = () => end.abort(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      const settle = () => {
        end.settle();
        signal?.removeEventListener("abort", onAbort);
      };
      return runStreamingCall({
        interceptors: clientInterceptors,
        signal: end.signal,
        req: {
          ...requestOf(method, header, timeoutMs, contextValues),
          stream: true,
          method,
          message: input,
        },
        next: async (request) => {
          // Connect aborts this signal at the end of every call, even of a successful call.
          request.signal.addEventListener("abort", settle, { once: true });
          const { spec, context } = arrive(specs, method, request, remaining(timeoutMs, clock));
          const invoke = transformInvokeImplementation(spec, context, interceptors);
          const source = iterateUntilAborted(request.signal, invoke(request.message));
          const iterator = received(source[Symbol.asyncIterator](), context);
          // When the reader stops early, only a call of `return` can notify the handler. The signal also aborts after
          // the normal end of a stream; then `return` has no effect.
          const leave = () => void iterator.return?.()?.catch(() => {});
          request.signal.addEventListener("abort", leave, { once: true });
          // As over a socket, the response begins with its first message. The handler may set headers until then.
          const first = await iterator.next();
          return {
            stream: true,
            service: method.parent,
            method,
            header: context.responseHeader,
            trailer: context.responseTrailer,
            message: startingWith(first, iterator) as AsyncIterable<never>,
          };
        },
      });
    },
  };
}

type CallHeader = ConstructorParameters<typeof Headers>[0];

/**
 * Returns the timeout of a call in milliseconds; undefined for no timeout. As in Connect, 0 and less mean no timeout.
 */
function limitOf(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined || timeoutMs <= 0 ? undefined : timeoutMs;
}

/** Starts a timeout. The returned function returns the milliseconds that remain; undefined if there is no timeout. */
function remaining(timeoutMs: number | undefined, clock: Clock): () => number | undefined {
  const limitMs = limitOf(timeoutMs);
  if (limitMs === undefined) return () => undefined;
  const dueMs = clock.now() + limitMs;
  return () => dueMs - clock.now();
}

function requestOf(
  method: DescMethod,
  header: CallHeader,
  timeoutMs: number | undefined,
  contextValues: RequestCommon["contextValues"] | undefined,
) {
  const headers = PlainHeaders.copyOf(header);
  if (timeoutMs !== undefined && timeoutMs > 0)
    headers.set("connect-timeout-ms", String(Math.ceil(timeoutMs)));
  return {
    service: method.parent,
    requestMethod: "POST",
    url: `http://in-process/${method.parent.typeName}/${method.name}`,
    header: headers,
    contextValues: contextValues ?? new PlainValues(),
  };
}

function specOf(specs: Specs, method: DescMethod): MethodImplSpec {
  const spec = specs.get(method);
  if (spec !== undefined) return spec;
  const name = `${method.parent.typeName}.${method.name}`;
  throw toConnectError(new ConnectError(`this process does not serve ${name}`, Code.Unimplemented));
}

/** Creates the handler's context of a unary call. Connect's own context would cost more than many handlers do. */
function unaryContext(
  { method, header, requestMethod, url }: UnaryRequest,
  timeoutMs: number | undefined,
  end: CallEnd,
  clock: Clock,
): HandlerContext {
  return {
    service: method.parent,
    method,
    protocolName: "direct",
    requestMethod,
    url,
    requestHeader: header,
    responseHeader: PlainHeaders.toSend({}),
    responseTrailer: PlainHeaders.toSend({}),
    values: new PlainValues().set(inProcessKey, true).set(callEndKey, end),
    signal: end.signal,
    timeoutMs: remaining(timeoutMs, clock),
  };
}

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;

/** Calls a method's implementation through the server's interceptors, outermost first. */
function served(
  spec: UnarySpec,
  context: HandlerContext,
  { message }: UnaryRequest,
  interceptors: readonly Interceptor[],
): Promise<UnaryResponse> {
  const { method } = spec;
  const { service, requestMethod, url, signal, requestHeader, values, responseHeader, responseTrailer } =
    context;
  let next: Next = async (request) => {
    const passed = request as UnaryRequest;
    const { header, contextValues } = passed;
    const own =
      header === requestHeader && contextValues === values && passed.signal === signal
        ? context
        : { ...context, requestHeader: header, values: contextValues, signal: passed.signal };
    const answer = create(method.output, await spec.impl(passed.message, own));
    return {
      stream: false,
      service,
      method,
      header: responseHeader,
      trailer: responseTrailer,
      message: answer,
    };
  };
  for (let index = interceptors.length - 1; index >= 0; index--) {
    next = (interceptors[index] as Interceptor)(next);
  }
  const request: UnaryRequest = {
    ...{ stream: false, service, method, requestMethod, url, message },
    ...{ header: requestHeader, contextValues: values, signal },
  };
  return next(request) as Promise<UnaryResponse>;
}

/** Creates the handler's context of a streaming call. */
function arrive(
  specs: Specs,
  method: DescMethod,
  request: RequestCommon,
  timeoutMs: HandlerContext["timeoutMs"],
) {
  const spec = specOf(specs, method);
  const context = createHandlerContext({
    service: method.parent,
    method,
    protocolName: "direct",
    requestMethod: request.requestMethod,
    url: request.url,
    requestSignal: request.signal,
    requestHeader: request.header,
    contextValues: createContextValues().set(inProcessKey, true),
  });
  // Connect would enforce a timeout by the system clock. Here the request's signal enforces the timeout by the clock of
  // the options.
  return { spec, context: { ...context, timeoutMs } };
}

/**
 * The reason with which a handler's signal aborts after the normal end of its stream. All streams share this object,
 * because creating a stack trace costs time.
 */
const OVER = new ConnectError("the call is over", Code.Canceled);

type Abortable = HandlerContext & { abort(reason?: unknown): void };

/**
 * Returns the responses of a stream for its client. The handler's signal aborts when the stream has ended, or when the
 * client stops reading.
 */
function received<T>(source: AsyncIterator<T>, context: Abortable): AsyncIterator<T> {
  return {
    async next() {
      try {
        const item = await source.next();
        if (item.done === true) context.abort(OVER);
        return item;
      } catch (thrown) {
        const error = asReceived(thrown, context);
        context.abort(error);
        throw error;
      }
    },
    async return(value?: unknown) {
      if (!context.signal.aborted) context.abort(new ConnectError("canceled", Code.Canceled));
      return (await source.return?.(value)) ?? { done: true, value };
    },
  };
}

/**
 * Converts an error to the form that a client would receive: a ConnectError whose metadata contains the response's
 * headers and trailers.
 */
function asReceived(thrown: unknown, context: HandlerContext): ConnectError {
  const error = toConnectError(thrown);
  for (const headers of [context.responseHeader, context.responseTrailer]) {
    headers.forEach((value, name) => {
      error.metadata.set(name, value);
    });
  }
  return error;
}

/** Collects the method implementations that `routes` registers, with a router that only records them. */
function collectSpecs(routes: (router: ConnectRouter) => void): Specs {
  const specs: Specs = new Map();
  const router: ConnectRouter = {
    handlers: [],
    service(service: DescService, implementation) {
      for (const spec of Object.values(createServiceImplSpec(service, implementation).methods)) {
        specs.set(spec.method, spec);
      }
      return router;
    },
    rpc(method, implementation) {
      specs.set(method, createMethodImplSpec(method, implementation));
      return router;
    },
  };
  routes(router);
  return specs;
}
