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
import {
  invokeUnaryImplementation,
  runStreamingCall,
  transformInvokeImplementation,
} from "@connectrpc/connect/protocol";
import { iterateUntilAborted, untilAborted } from "./abort.ts";
import { CallEnd } from "./call-end.ts";
import { callEndKey, inProcessKey } from "./call-values.ts";
import { toConnectError } from "./errors-on-wire.ts";
import { PlainHeaders } from "./fast/plain-headers.ts";
import { PlainValues } from "./fast/plain-values.ts";

type Next = Parameters<Interceptor>[0];

export interface DirectTransportOptions {
  /** Registers the implementations, as for a server. */
  routes: (router: ConnectRouter) => void;
  /** What calls pass on the server's side, outermost first: the same as over a socket. */
  interceptors?: Interceptor[];
  /** What calls pass on the client's side, outermost first. */
  clientInterceptors?: Interceptor[];
}

type RequestCommon = Omit<UnaryRequest, "stream" | "message" | "method">;
type Specs = Map<DescMethod, MethodImplSpec>;

/**
 * Calls implementations in this process behind the interface of a client's transport: no socket, no codec.
 *
 * A call behaves as over the wire: the same interceptors in the same order, headers and trailers, deadlines, aborts and
 * errors; the server's context values are its own. Only messages are not copied: neither side may change one that it has
 * handed over.
 */
export function createDirectTransport(options: DirectTransportOptions): Transport {
  const { interceptors = [], clientInterceptors = [] } = options;
  const specs = collectSpecs(options.routes);
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const end = new CallEnd(timeoutMs === undefined || timeoutMs <= 0 ? undefined : timeoutMs);
      const onAbort = () => end.abort(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      let next: Next = async (request) => {
        const arrived = request as UnaryRequest;
        const spec = specOf(specs, method);
        const context = unaryContext(arrived, timeoutMs, end);
        try {
          if (spec.kind !== "unary") throw new ConnectError("not a unary method", Code.Internal);
          const answer = invokeUnaryImplementation(spec, context, arrived.message, interceptors);
          const message = await untilAborted(end.signal, answer);
          return {
            stream: false,
            service: method.parent,
            method,
            header: context.responseHeader,
            trailer: context.responseTrailer,
            message,
          } as UnaryResponse;
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
        // From here on the handler's signal stays as it is: nothing that it does is of use to anybody.
        end.settle();
        signal?.removeEventListener("abort", onAbort);
      }
    },

    stream(method, signal, timeoutMs, header, input, contextValues) {
      return runStreamingCall({
        interceptors: clientInterceptors,
        ...limits(signal, timeoutMs),
        req: {
          ...requestOf(method, header, timeoutMs, contextValues),
          stream: true,
          method,
          message: input,
        },
        next: async (request) => {
          const { spec, context } = arrive(specs, method, request, timeoutMs);
          const invoke = transformInvokeImplementation(spec, context, interceptors);
          const source = iterateUntilAborted(request.signal, invoke(request.message));
          const iterator = received(source[Symbol.asyncIterator](), context);
          // A reader that gives up asks for no further message, so the handler has to be told; after a stream's end, when
          // this signal aborts too, it does nothing.
          const leave = () => void iterator.return?.()?.catch(() => {});
          request.signal.addEventListener("abort", leave, { once: true });
          // As over a socket, an answer begins with its first message: until then a handler may still set headers.
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

function limits(signal: AbortSignal | undefined, timeoutMs: number | undefined) {
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(timeoutMs === undefined || timeoutMs <= 0 ? {} : { timeoutMs }),
  };
}

function requestOf(
  method: DescMethod,
  header: CallHeader,
  timeoutMs: number | undefined,
  contextValues: RequestCommon["contextValues"] | undefined,
) {
  const headers = new Headers(header);
  if (timeoutMs !== undefined && timeoutMs > 0)
    headers.set("connect-timeout-ms", String(Math.ceil(timeoutMs)));
  return {
    service: method.parent,
    requestMethod: "POST",
    url: `http://in-process/${method.parent.typeName}/${method.name}`,
    header: headers,
    contextValues: contextValues ?? createContextValues(),
  };
}

function specOf(specs: Specs, method: DescMethod): MethodImplSpec {
  const spec = specs.get(method);
  if (spec !== undefined) return spec;
  const name = `${method.parent.typeName}.${method.name}`;
  throw toConnectError(new ConnectError(`${name} is not served here`, Code.Unimplemented));
}

/** The server's end of a unary call; Connect's own context costs more than many a handler. */
function unaryContext(
  { method, header, requestMethod, url }: UnaryRequest,
  timeoutMs: number | undefined,
  end: CallEnd,
): HandlerContext {
  const dueMs = timeoutMs === undefined || timeoutMs <= 0 ? undefined : Date.now() + timeoutMs;
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
    timeoutMs: () => (dueMs === undefined ? undefined : dueMs - Date.now()),
  };
}

/** The server's end of a stream. */
function arrive(specs: Specs, method: DescMethod, request: RequestCommon, timeoutMs: number | undefined) {
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
    ...(timeoutMs === undefined || timeoutMs <= 0 ? {} : { timeoutMs }),
  });
  return { spec, context };
}

type Abortable = HandlerContext & { abort(reason?: unknown): void };

/** A stream as its client sees it; the handler's signal aborts when it has ended or its reader has left. */
function received<T>(source: AsyncIterator<T>, context: Abortable): AsyncIterator<T> {
  return {
    async next() {
      try {
        const item = await source.next();
        if (item.done === true) context.abort();
        return item;
      } catch (thrown) {
        const error = asReceived(thrown, context);
        context.abort(error);
        throw error;
      }
    },
    async return(value?: unknown) {
      context.abort(new ConnectError("canceled", Code.Canceled));
      return (await source.return?.(value)) ?? { done: true, value };
    },
  };
}

function startingWith<T>(first: IteratorResult<T>, rest: AsyncIterator<T>): AsyncIterable<T> {
  let pending: IteratorResult<T> | undefined = first;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        if (pending === undefined) return rest.next();
        const item = pending;
        pending = undefined;
        return Promise.resolve(item);
      },
      return: (value?: unknown) => rest.return?.(value) ?? Promise.resolve({ done: true, value }),
    }),
  };
}

/** An error as a client gets it: a ConnectError, with the response's headers and trailers in its metadata. */
function asReceived(thrown: unknown, context: HandlerContext): ConnectError {
  const error = toConnectError(thrown);
  for (const headers of [context.responseHeader, context.responseTrailer]) {
    headers.forEach((value, name) => {
      error.metadata.set(name, value);
    });
  }
  return error;
}

/** Runs the registration against a router that only takes note. */
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
