import { compressedFlag, compressionNegotiate, encodeEnvelope } from "@connectrpc/connect/protocol";
import { grpcStatusOk, parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { COMPRESSIONS } from "../encodings.ts";
import { addReason } from "../protocol-errors.ts";
import { COMPRESS_MIN_BYTES } from "../rpc-handler.ts";
import type { Answer, Protocol } from "./call.ts";

/** Bytes before each message: a flag and the message's length. */
const PREFIX_BYTES = 5;

/**
 * gRPC over HTTP/2 with binary messages. A request's body is one message with its prefix, and the trailer contains the
 * status.
 */
export const grpc: Protocol = {
  name: "grpc",
  binary: true,
  header: { "content-type": "application/grpc+proto" },
  trailer: { "grpc-status": grpcStatusOk },

  accepts(headers) {
    const encoding = headers["grpc-encoding"];
    return encoding === undefined || encoding === "identity";
  },

  timeoutOf(headers) {
    const timeout = headers["grpc-timeout"];
    return timeout === undefined ? NO_TIMEOUT : parseTimeout(String(timeout), Number.MAX_SAFE_INTEGER);
  },

  limitOf(chunks, length, maxBytes) {
    if (length < PREFIX_BYTES) return undefined;
    let prefix = chunks[0] as Buffer;
    if (prefix.length < PREFIX_BYTES) prefix = Buffer.concat(chunks);
    const size = prefix.readUInt32BE(1);
    return prefix[0] !== 0 || size > maxBytes ? -1 : PREFIX_BYTES + size;
  },

  messageOf(body, limit) {
    return body.length === limit ? body.subarray(PREFIX_BYTES) : undefined;
  },

  answer(headers, { header, trailer }, message) {
    if (message.length >= COMPRESS_MIN_BYTES) {
      const accepted = String(headers["grpc-accept-encoding"] ?? "");
      const { response } = compressionNegotiate(COMPRESSIONS, null, accepted, "grpc-accept-encoding");
      if (response !== null) {
        header.set("grpc-encoding", response.name);
        return response.compress(message).then((compressed) => ({
          status: 200,
          header,
          body: encodeEnvelope(compressedFlag, compressed),
          trailer,
        }));
      }
    }
    return { status: 200, header, body: envelopeOf(message), trailer };
  },

  refuse(_headers, { header, trailer }, error): Answer {
    setTrailerStatus(trailer, error);
    addReason(trailer);
    return { status: 200, header, body: undefined, trailer };
  },
};

const NO_TIMEOUT = {};

/** Puts the prefix before a message. Connect's encodeEnvelope would allocate more memory for each message. */
function envelopeOf(message: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}
