import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
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
import { clientAddressKey, requestIdKey } from "../call-values.ts";
import { currentTracer, inService, tracerOf } from "../tracer.ts";
import { type Request, withHooks } from "./outcome.ts";

/** The host in the URL of a call within the process; see `createDirectTransport`. */
const IN_PROCESS = "in-process";

const getter: TextMapGetter<Headers> = {
  keys: (headers) => [...headers.keys()],
  get: (headers, key) => headers.get(key) ?? undefined,
};
const setter: TextMapSetter<Headers> = { set: (headers, key, value) => headers.set(key, value) };

/**
 * Opens a span for each call that a service answers. If the caller sent the id of a span (W3C `traceparent`), the new
 * span is a child of that span. Names and attributes follow OpenTelemetry's conventions for Connect RPC.
 *
 * @param service the name of the service
 */
export function serverTracingInterceptor(service: string): Interceptor {
  return (next) => (request) => {
    const parent = propagation.extract(context.active(), request.header, getter);
    const attributes = attributesOf(request);
    const span = tracerOf(service).startSpan(nameOf(request), { kind: SpanKind.SERVER, attributes }, parent);
    const id = request.contextValues.get(requestIdKey);
    if (id !== "") span.setAttribute("depute.request_id", id);
    const address = request.contextValues.get(clientAddressKey);
    if (address !== "") span.setAttribute("client.address", address);
    const active = inService(trace.setSpan(parent, span), service);
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
    const attributes = { ...attributesOf(request), ...serverOf(request.url) };
    const span = currentTracer().startSpan(nameOf(request), { kind: SpanKind.CLIENT, attributes }, parent);
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
    "rpc.system": "connect_rpc",
    "rpc.service": method.parent.typeName,
    "rpc.method": method.name,
  };
}

/** Returns the span attributes for the address of the called server; none for a call within the process. */
function serverOf(url: string): Record<string, string | number> {
  if (!URL.canParse(url)) return {};
  const { hostname, port } = new URL(url);
  if (hostname === IN_PROCESS) return {};
  return { "server.address": hostname, ...(port !== "" && { "server.port": Number(port) }) };
}

function finish(span: Span, thrown: unknown): void {
  if (thrown !== undefined) {
    const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
    const name = codeToString(code);
    span.setAttributes({ "rpc.connect_rpc.error_code": name, "error.type": name });
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}
