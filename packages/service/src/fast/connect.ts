import type { IncomingHttpHeaders } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { compressionNegotiate, mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import {
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  errorToJsonBytes,
  parseTimeout,
} from "@connectrpc/connect/protocol-connect";
import { COMPRESSIONS } from "../encodings.ts";
import { httpStatusOf, withReason } from "../protocol-errors.ts";
import { COMPRESS_MIN_BYTES } from "../rpc-handler.ts";
import type { Answer, AnswerHead, Protocol } from "./call.ts";

export const connectBinary = connect(true);
export const connectJson = connect(false);

/**
 * Returns the protocol of unary Connect calls by POST. The body is the message, and a trailer is a header field with
 * the prefix `trailer-`.
 */
function connect(binary: boolean): Protocol {
  return {
    name: "connect",
    binary,
    header: { "content-type": binary ? contentTypeUnaryProto : contentTypeUnaryJson },
    trailer: {},

    accepts(headers, maxBytes) {
      const encoding = headers["content-encoding"];
      if (encoding !== undefined && encoding !== "identity") return false;
      const length = headers["content-length"];
      return length === undefined || Number(length) <= maxBytes;
    },

    timeoutOf(headers) {
      const timeout = headers["connect-timeout-ms"];
      return timeout === undefined ? NO_TIMEOUT : parseTimeout(String(timeout), Number.MAX_SAFE_INTEGER);
    },

    limitOf: (_chunks, _length, maxBytes) => maxBytes,
    messageOf: (body) => body,

    answer: (headers, head, message) => withBody(headers, 200, head, message),

    refuse(headers, head, error) {
      head.header.set("content-type", contentTypeUnaryJson);
      if (!error.isWireError) mergeNonProtocolHeaders(head.header, error.metadata);
      const reasoned: ConnectError = withReason(error);
      const body = errorToJsonBytes(reasoned, undefined);
      return withBody(headers, httpStatusOf(reasoned), head, body);
    },
  };
}

const NO_TIMEOUT = {};

function withBody(
  headers: IncomingHttpHeaders,
  status: number,
  { header, trailer }: AnswerHead,
  body: Uint8Array,
): Answer | Promise<Answer> {
  trailer.forEach((value, name) => {
    header.append(`trailer-${name}`, value);
  });
  if (body.length >= COMPRESS_MIN_BYTES) {
    const accepted = String(headers["accept-encoding"] ?? "");
    const { response } = compressionNegotiate(COMPRESSIONS, null, accepted, "accept-encoding");
    if (response !== null) {
      header.set("content-encoding", response.name);
      return response.compress(body).then((compressed) => answerWithLength(status, header, compressed));
    }
  }
  return answerWithLength(status, header, body);
}

function answerWithLength(status: number, header: Headers, body: Uint8Array): Answer {
  header.set("content-length", String(body.length));
  return { status, header, body, trailer: undefined };
}
