import type { IncomingMessage, ServerResponse } from "node:http";
import { CallEnd } from "../call-end.ts";
import { DIRECT_CLIENTS } from "../client-address.ts";
import { sendWhole } from "../http-answers.ts";
import { readBody } from "../http-body.ts";
import { bodyLimitsOf, logUnsent, wholeBody } from "../rpc-handler.ts";
import { certificateOfRequest } from "../tls/client-certificate.ts";
import { isBodyUnread } from "../unread-body.ts";
import {
  answerOf,
  type FastPathOptions,
  handOver,
  type InHand,
  only,
  PROTOCOLS,
  read,
  urlOf,
} from "./answer.ts";
import type { Answer, Call } from "./call.ts";
import { grpc } from "./grpc.ts";
import type { FastMethod } from "./methods.ts";
import { toNodeFields } from "./plain-values.ts";

/** Serves an HTTP/1.1 request and returns true, or leaves the request untouched and returns false. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Serves plain calls over HTTP/1.1: uncompressed POST requests of unary Connect methods. See createFastPath for the
 * same over HTTP/2.
 */
export function requestHandler(
  methods: ReadonlyMap<string, FastMethod>,
  options: FastPathOptions,
): RequestHandler {
  const { addresses = DIRECT_CLIENTS, clock, timers } = options;
  return (request, response) => {
    const { headers } = request;
    const method = methods.get(request.url ?? "");
    if (method?.spec.kind !== "unary" || request.method !== "POST" || headers.expect !== undefined)
      return false;
    if (request.httpVersion !== "1.1") return false;
    const protocol = PROTOCOLS.get(headers["content-type"]);
    if (protocol === undefined || protocol === grpc) return false;
    if (!protocol.accepts(headers, options.maxRequestBytes)) return false;
    const { timeoutMs, error } = protocol.timeoutOf(headers);
    if (error !== undefined) return false;
    const scheme = "encrypted" in request.socket ? "https" : "http";
    const call: Call = {
      ...{
        httpVersion: "1.1",
        headers,
        url: urlOf(scheme, headers.host ?? "", method),
        method,
        protocol,
        clock,
      },
      ...{ certificate: certificateOfRequest(request), address: addresses.ofRequest(request) },
      due: timeoutMs === undefined ? undefined : clock.now() + timeoutMs,
      sizes: { request: 0 },
    };
    const inHand = { call, end: new CallEnd({ timeoutMs, timers }), options };
    response.on("close", () => inHand.end.leave());
    response.on("error", ignore);
    void complete(request, response, inHand);
    return true;
  };
}

// The "close" event reports a broken connection. Without this listener, the error would end the process.
function ignore(): void {}

/** Reads the message of a call, calls the method, and sends the response. The promise never rejects. */
async function complete(request: IncomingMessage, response: ServerResponse, inHand: InHand): Promise<void> {
  const { call, end, options } = inHand;
  try {
    const answer = await answerTo(request, inHand);
    end.settle();
    if (!response.destroyed) send(request, response, answer);
  } catch (error) {
    response.destroy();
    logUnsent(options.log, call.method.path, error);
  }
}

/** Answers a request. The adapter answers if the body is refused, or is not a plain message. */
async function answerTo(request: IncomingMessage, inHand: InHand): Promise<Answer> {
  const { call, end, options } = inHand;
  let body: Buffer;
  try {
    body = await readBody(request, bodyLimitsOf(options, call.headers["content-type"]));
  } catch (refusal) {
    const refused = wholeBody(() => Promise.reject(refusal), call.method.adapter.note);
    return handOver(call, end, refused);
  }
  call.sizes.request = body.length;
  const message = read(call, body);
  return message === undefined ? handOver(call, end, only(body)) : answerOf(inHand, message);
}

function send(request: IncomingMessage, response: ServerResponse, { status, header, body }: Answer): void {
  const bytes = body ?? NO_BYTES;
  if (isBodyUnread(request)) {
    sendWhole(response, status, { headers: header, bytes });
    return;
  }
  response.writeHead(status, toNodeFields(header));
  response.end(bytes);
}

const NO_BYTES = new Uint8Array();
