import type { IncomingHttpHeaders } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import { reasonName } from "@depute/core";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  mediaTypeOf,
  type PathParameters,
  sendBytes,
  sendText,
  takeBody,
} from "@depute/service";
import { refusalIn } from "../fault.ts";
import type { WireDeps } from "../json-rpc-route.ts";
import { sendEvents } from "../sse.ts";
import { sendValidated } from "../validated.ts";
import { type WireCall, wireCall } from "../wire-call.ts";
import {
  type Answer,
  type Asked,
  type JsonAnswer,
  names,
  type Route,
  type Wire,
  type WireError,
} from "./route.ts";

/**
 * Serves the routes of a wire. The edge reads the body within its bounds, opens the stream of events that a client asks for,
 * writes the answer, and has the wire spell every error. It logs refusals at info, and faults of the platform at error.
 */
export function serveWire(wire: Wire, deps: WireDeps): HttpRoute[] {
  return wire.routes.map((route) => ({
    methods: [route.method],
    path: route.path,
    ...(route.takes && { takes: route.takes }),
    async handle(request, response, parameters) {
      const call = wireCall(request, response, deps.publicUrl);
      const headers = wire.headersOf?.(route.path, parameters) ?? {};
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      try {
        const asked = await askedOf(route, request, parameters, call, deps);
        if (route.events !== undefined && names(request.headers, "text/event-stream")) {
          return await sendEvents(response, await route.events(asked), deps);
        }
        send(wire, request, response, await route.answer(asked));
      } catch (thrown) {
        if (wire.toError === undefined || response.headersSent) throw thrown;
        const error = wire.toError(thrown, call.requestId);
        deps.log[error.status >= 500 ? "error" : "info"](noteOf(route, call, error, thrown), wire.name);
        write(wire, request.headers, response, error);
      }
    },
  }));
}

async function askedOf(
  { takes, mayOmitBody }: Route,
  request: HttpRequest,
  parameters: PathParameters,
  call: WireCall,
  { bodies }: WireDeps,
): Promise<Asked> {
  const { headers } = request;
  const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
  const asked = { parameters, query, headers, call };
  if (takes === undefined || (mayOmitBody === true && isBodyOmitted(headers))) return asked;
  const bytes = await takeBody(request, takes, bodies);
  return { ...asked, body: { bytes, type: mediaTypeOf(headers["content-type"]) } };
}

/** Over HTTP/2 a body may come without a length; then it is announced by its type alone. */
function isBodyOmitted(headers: IncomingHttpHeaders): boolean {
  const { "content-length": length, "transfer-encoding": coding, "content-type": type } = headers;
  if (length !== undefined) return Number(length) === 0;
  return coding === undefined && type === undefined;
}

function send(wire: Wire, request: HttpRequest, response: HttpResponse, answer: Answer): void {
  switch (answer.kind) {
    case "document":
      sendValidated(request, response, answer.document);
      break;
    case "text":
      sendText(response, 200, answer.text, answer.headers);
      break;
    default:
      write(wire, request.headers, response, answer);
  }
}

/** Writes an answer, or an error, as the wire spells JSON. */
function write(
  wire: Wire,
  received: IncomingHttpHeaders,
  response: HttpResponse,
  { status, body, headers = {} }: Omit<JsonAnswer, "kind">,
): void {
  const { bytes, type } = (wire.write ?? plainJson)(body, received);
  sendBytes(response, status, bytes, { "content-type": type, ...headers });
}

function plainJson(body: JsonValue): { bytes: Uint8Array; type: string } {
  return { bytes: Buffer.from(JSON.stringify(body)), type: "application/json" };
}

/** The fields of a refusal's line in the log; a fault of the platform has its cause. */
function noteOf({ path }: Route, { requestId }: WireCall, { status }: WireError, thrown: unknown) {
  const fields = { path, request_id: requestId, reason: reasonName(refusalIn(thrown).reason) };
  return status >= 500 ? { ...fields, err: thrown } : fields;
}
