import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { create, type Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { compressedFlag, compressionNegotiate, encodeEnvelope } from "@connectrpc/connect/protocol";
import type { CallEnd } from "../call-end.ts";
import { COMPRESSIONS } from "../encodings.ts";
import { COMPRESS_MIN_BYTES } from "../rpc-handler.ts";
import type { Call } from "./call.ts";
import { headOf, refusalOf, replace } from "./head.ts";
import { invokeStream } from "./invoke.ts";
import { toNodeHeaders } from "./plain-headers.ts";
import { write } from "./write.ts";

const WITH_TRAILERS = { waitForTrailers: true };

/**
 * Sends what a method answers with, each message as it comes and no faster than it is read. The answer's header goes out
 * with the first message, until which a handler may still write to it.
 *
 * @returns the trailer, to be sent when the stream ends
 */
export async function sendStream(
  stream: ServerHttp2Stream,
  call: Call,
  end: CallEnd,
  interceptors: readonly Interceptor[],
  message: Message,
): Promise<OutgoingHttpHeaders> {
  const { headers, method, protocol } = call;
  const head = headOf(protocol);
  const accepted = String(headers["grpc-accept-encoding"] ?? "");
  const packing = compressionNegotiate(COMPRESSIONS, null, accepted, "grpc-accept-encoding").response;
  if (packing !== null) head.header.set("grpc-encoding", packing.name);
  let hasBegun = false;
  const begin = () => {
    if (hasBegun || isGone(stream)) return;
    hasBegun = true;
    stream.respond({ ...toNodeHeaders(head.header), ":status": 200 }, WITH_TRAILERS);
  };
  try {
    const response = await invokeStream(call, end, interceptors, message, head);
    for await (const item of response.message) {
      replace(head.header, response.header);
      begin();
      const bytes = write(call, create(method.spec.method.output, item));
      const isLong = packing !== null && bytes.length >= COMPRESS_MIN_BYTES;
      const frame = isLong
        ? encodeEnvelope(compressedFlag, await packing.compress(bytes))
        : encodeEnvelope(0, bytes);
      if (isGone(stream)) break;
      cork(stream);
      if (!stream.write(frame)) await drained(stream);
    }
    replace(head.header, response.header);
    replace(head.trailer, response.trailer);
  } catch (thrown) {
    await protocol.refuse(headers, head, refusalOf(thrown));
  }
  begin();
  return toNodeHeaders(head.trailer);
}

/** Has what is written before the event loop goes on leave together. */
function cork(stream: ServerHttp2Stream): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(uncork, stream);
}

function uncork(stream: ServerHttp2Stream): void {
  stream.uncork();
}

function isGone(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

/** Resolves when more can be written, or nothing ever. */
function drained(stream: ServerHttp2Stream): Promise<void> {
  if (isGone(stream)) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}
