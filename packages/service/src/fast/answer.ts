import type { Message } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import { bytesOf, checkAnswer, MAX_ANSWER_BYTES } from "../answer-limit.ts";
import { hostOfUrl } from "../authority-host.ts";
import type { CallEnd } from "../call-end.ts";
import { clientAddressKey, clientCertificateKey } from "../call-values.ts";
import { toConnectError } from "../errors-on-wire.ts";
import { decodingFault } from "../field-limit/with-field-limit.ts";
import type { RpcHandlerOptions } from "../rpc-handler.ts";
import type { Answer, Call, Protocol } from "./call.ts";
import { connectBinary, connectJson } from "./connect.ts";
import { grpc } from "./grpc.ts";
import { type Chains, invoke } from "./invoke.ts";
import type { FastMethod } from "./methods.ts";
import { PlainHeaders } from "./plain-values.ts";
import { headOf, refusalOf, replace, write } from "./send.ts";

/**
 * The fast path's protocols by content type. The adapter serves requests that spell these content types differently.
 */
export const PROTOCOLS: ReadonlyMap<string | undefined, Protocol> = new Map<string | undefined, Protocol>([
  ["application/grpc", grpc],
  ["application/grpc+proto", grpc],
  ["application/proto", connectBinary],
  ["application/json", connectJson],
]);

/** Returns the URL of a call. `method.last` caches the last URL, because callers use few authorities. */
export function urlOf(scheme: "http" | "https", authority: string, method: FastMethod): string {
  const { last } = method;
  if (last.authority !== authority || last.scheme !== scheme) {
    const url = new URL(method.path, `${scheme}://${hostOfUrl(authority)}`).toString();
    method.last = { scheme, authority, url };
  }
  return method.last.url;
}

/** The settings and the interceptors of a server, for its fast path. */
export interface FastPathOptions extends RpcHandlerOptions {
  readonly chains: Chains;
}

/** A call in hand: its end, and the settings of its server. */
export interface InHand {
  readonly call: Call;
  readonly end: CallEnd;
  readonly options: FastPathOptions;
}

/** Calls a unary method, and returns its response or its error. */
export async function answerOf({ call, end, options }: InHand, message: Message): Promise<Answer> {
  const { headers, protocol } = call;
  const head = headOf(protocol);
  try {
    const response = await invoke(call, end, options.chains.unary, message, head);
    replace(head.header, response.header);
    replace(head.trailer, response.trailer);
    const bytes = write(call, response.message);
    call.sizes.onAnswer?.(bytes.length);
    if (bytes.length > MAX_ANSWER_BYTES) checkWritten(call, response.message, bytes);
    return protocol.answer(headers, head, bytes);
  } catch (thrown) {
    return protocol.refuse(headers, head, refusalOf(thrown));
  }
}

/**
 * Checks the size of a response. The limit is for protobuf's binary form, so a JSON response is measured in this form
 * too.
 */
function checkWritten({ method: { spec }, protocol }: Call, message: Message, written: Uint8Array): void {
  const bytes = protocol.binary ? written.length : bytesOf(spec.method.output, message);
  try {
    checkAnswer(spec.method, message, bytes);
  } catch (thrown) {
    throw toConnectError(thrown);
  }
}

/**
 * Decodes a message. Returns undefined if the adapter must handle the call: for absent or invalid bytes, and for an
 * exceeded limit.
 */
export function read({ method, protocol }: Call, bytes: Uint8Array | undefined): Message | undefined {
  if (bytes === undefined) return undefined;
  const { maxFields, spec } = method;
  if (decodingFault(spec.method, maxFields, bytes, protocol.binary) !== undefined) return undefined;
  try {
    return method.serialization.getI(protocol.binary).parse(bytes);
  } catch {
    return undefined;
  }
}

/** Yields a body, for the adapter. */
export async function* only(body: Uint8Array): AsyncIterable<Uint8Array> {
  if (body.length > 0) yield body;
}

/**
 * Passes a call to Connect's adapter, with a body that contains the bytes already read. Returns the adapter's response.
 */
export async function handOver(call: Call, end: CallEnd, body: AsyncIterable<Uint8Array>): Promise<Answer> {
  const answered = await call.method.adapter.handle({
    httpVersion: call.httpVersion,
    method: "POST",
    url: call.url,
    header: new Headers([...PlainHeaders.received(call.headers)]),
    body,
    signal: end.signal,
    contextValues: createContextValues()
      .set(clientCertificateKey, call.certificate)
      .set(clientAddressKey, call.address),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of answered.body ?? []) chunks.push(chunk);
  return {
    status: answered.status,
    header: answered.header ?? new Headers(),
    body: Buffer.concat(chunks),
    trailer: answered.trailer,
  };
}
