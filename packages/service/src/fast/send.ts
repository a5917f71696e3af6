import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { compressedFlag, compressionNegotiate, encodeEnvelope } from "@connectrpc/connect/protocol";
import type { CallEnd } from "../call-end.ts";
import { COMPRESSIONS } from "../encodings.ts";
import { COMPRESS_MIN_BYTES } from "../rpc-handler.ts";
import type { AnswerHead, Call, Protocol } from "./call.ts";
import { type Chains, invokeStream } from "./invoke.ts";
import { PlainHeaders, toNodeHeaders } from "./plain-values.ts";

/** Creates the initial header and trailer of a response. */
export function headOf({ header, trailer }: Protocol): AnswerHead {
  return { header: PlainHeaders.toSend({ ...header }), trailer: PlainHeaders.toSend({ ...trailer }) };
}

/** Replaces the fields of `into` by those of `by`. An interceptor may have returned another headers object. */
export function replace(into: Headers, by: Headers): void {
  if (into === by) return;
  for (const name of [...into.keys()]) into.delete(name);
  for (const [name, value] of by) into.append(name, value);
}

/** Converts an exception to the error of the response. */
export function refusalOf(thrown: unknown): ConnectError {
  return thrown instanceof ConnectError
    ? thrown
    : new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}

/** Encodes the response of a call in the form of the call's protocol: binary or JSON. */
export function write({ method, protocol }: Call, message: Message): Uint8Array {
  if (protocol.binary) return toBinary(method.spec.method.output, message);
  return method.serialization.getO(false).serialize(message as never);
}

const WITH_TRAILERS = { waitForTrailers: true };

/**
 * Sends the response messages of a method: each as soon as the handler yields it, but no faster than the client reads.
 * The header is sent with the first message, so a handler may write to the header until then.
 *
 * @returns the trailer, which is sent when the stream ends
 */
export async function sendStream(
  stream: ServerHttp2Stream,
  call: Call,
  end: CallEnd,
  chains: Chains,
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
    const response = await invokeStream(call, end, chains.stream, message, head);
    for await (const item of response.message) {
      replace(head.header, response.header);
      begin();
      const bytes = write(call, create(method.spec.method.output, item));
      call.sizes.onAnswer?.(bytes.length);
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

/** Corks the stream until the next tick, so that all writes before that tick are sent together. */
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

/** Resolves when the stream accepts more data, or when it has closed. */
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
