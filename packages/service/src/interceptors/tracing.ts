import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import {
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapSetter,
  trace,
} from "@opentelemetry/api";
import { requestIdKey } from "../call-values.ts";
import { type Request, withHooks } from "./outcome.ts";

const TRACER = "depute";

const getter: TextMapGetter<Headers> = {
  keys: (headers) => [...headers.keys()],
  get: (headers, key) => headers.get(key) ?? undefined,
};
const setter: TextMapSetter<Headers> = { set: (headers, key, value) => headers.set(key, value) };

/**
 * Opens a span for each call that this process answers. If the caller sent a span (W3C `traceparent`), the new
 * span is its child.
 */
export function serverTracingInterceptor(): Interceptor {
  return (next) => (request) => {
    const parent = propagation.extract(context.active(), request.header, getter);
    const span = trace
      .getTracer(TRACER)
      .startSpan(nameOf(request), { kind: SpanKind.SERVER, ...attributesOf(request) }, parent);
    const id = request.contextValues.get(requestIdKey);
    if (id !== "") span.setAttribute("depute.request_id", id);
    const active = trace.setSpan(parent, span);
    // Each step of a stream runs in the span's context. Otherwise an async generator would run in the context of its
    // reader.
    return withHooks(next, request, {
      run: (step) => context.with(active, step),
      end: (thrown) => finish(span, thrown),
    });
  };
}

/** Opens a span for each call that this process makes, and puts the span's id into the call's headers. */
export function clientTracingInterceptor(): Interceptor {
  return (next) => (request) => {
    const parent = context.active();
    const span = trace
      .getTracer(TRACER)
      .startSpan(nameOf(request), { kind: SpanKind.CLIENT, ...attributesOf(request) }, parent);
    const active = trace.setSpan(parent, span);
    propagation.inject(active, request.header, setter);
    return withHooks(next, request, {
      run: (step) => context.with(active, step),
      end: (thrown) => finish(span, thrown),
    });
  };
}

function nameOf({ method }: Request): string {
  return `${method.parent.typeName}/${method.name}`;
}

function attributesOf({ method }: Request) {
  return {
    attributes: {
      "rpc.system": "connect_rpc",
      "rpc.service": method.parent.typeName,
      "rpc.method": method.name,
    },
  };
}

function finish(span: Span, thrown: unknown): void {
  if (thrown !== undefined) {
    const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
    span.setAttribute("rpc.connect_rpc.error_code", Code[code] ?? "Unknown");
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}
