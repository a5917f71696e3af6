import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";

const MESSAGE = "grpc-message";

/** Writes an error to gRPC trailers, with a message that every client can decode. */
export function setGrpcStatus(trailer: Headers, error: ConnectError): void {
  setTrailerStatus(trailer, error);
  respellMessage(trailer);
}

/**
 * Encodes the message of trailers as gRPC over HTTP/2 requires: only non-printable characters and `%` are escaped.
 * Connect escapes further characters, and clients of gRPC's own libraries do not decode these.
 */
export function respellMessage(trailer: Headers): void {
  const spelled = trailer.get(MESSAGE);
  if (spelled?.includes("%") !== true) return;
  const text = decodeURIComponent(spelled);
  trailer.set(MESSAGE, text.replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent));
}
