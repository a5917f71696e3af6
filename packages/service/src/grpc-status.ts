import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";

const MESSAGE = "grpc-message";

/** Writes an error as gRPC's trailers, with a message that every client reads as it is. */
export function setGrpcStatus(trailer: Headers, error: ConnectError): void {
  setTrailerStatus(trailer, error);
  respellMessage(trailer);
}

/**
 * Spells the message of trailers as gRPC over HTTP/2 says: only what is not printable ASCII, and `%`, is escaped. Connect
 * escapes more, as for a part of an address, and clients of gRPC's own libraries leave that as it is.
 */
export function respellMessage(trailer: Headers): void {
  const spelled = trailer.get(MESSAGE);
  if (spelled?.includes("%") !== true) return;
  const text = decodeURIComponent(spelled);
  trailer.set(MESSAGE, text.replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent));
}
