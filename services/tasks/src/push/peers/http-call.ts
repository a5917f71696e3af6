import type { JsonValue } from "@bufbuild/protobuf";
import { DeputeError } from "@depute/core";
import type { OutboundAnswer, OutboundRequest } from "@depute/service";
import { NOT_ALLOWED, PeerFault, REFUSED, TOO_MUCH, UNREACHABLE } from "../rules/refusal.ts";
import { MAX_ANSWER_BYTES, type PeerOutbound, readAnswer } from "./peer.ts";

/**
 * The longest timeout that Node supports, in milliseconds. Calls that last as long as the work have this idle limit.
 */
export const LONGEST_MS = 2 ** 31 - 1;

/**
 * Sends a request to an endpoint. A call with the idle limit LONGEST_MS uses the pool of connections for streams.
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export async function sendHttp(
  { streams, calls }: PeerOutbound,
  url: string,
  request: OutboundRequest,
): Promise<OutboundAnswer> {
  try {
    // This limit is one byte above the real limit. So the reader can distinguish an oversized response from a broken
    // one.
    const limits = { ...request, maxBytes: request.maxBytes + 1 };
    return await (request.idleMs === LONGEST_MS ? streams : calls).send(url, limits);
  } catch (thrown) {
    throw unreachable(thrown);
  }
}

/** Returns the media type of an HTTP response, in lower case and without parameters. */
export function mediaTypeOf({ headers }: OutboundAnswer): string {
  return String(headers["content-type"] ?? "")
    .split(";", 1)[0]
    ?.trim()
    .toLowerCase() as string;
}

/** Returns the fault for an HTTP status other than success. */
export function faultOfStatus(status: number): PeerFault {
  const mayPass = status >= 500 || status === 408 || status === 425 || status === 429;
  return new PeerFault(mayPass ? UNREACHABLE : REFUSED, `the endpoint answered with HTTP status ${status}`);
}

/**
 * Reads a JSON body.
 *
 * @throws PeerFault ENDPOINT_MALFORMED, LIMIT_EXCEEDED, ENDPOINT_UNREACHABLE
 */
export async function readAll(body: AsyncIterable<Uint8Array>): Promise<JsonValue> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of pieces(body, MAX_ANSWER_BYTES)) chunks.push(chunk);
  return readAnswer(Buffer.concat(chunks));
}

/**
 * Yields the pieces of a body.
 *
 * @throws PeerFault LIMIT_EXCEEDED, ENDPOINT_UNREACHABLE
 */
export async function* pieces(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let length = 0;
  try {
    for await (const chunk of body) {
      length += chunk.length;
      if (length > maxBytes)
        throw new PeerFault(TOO_MUCH, "the endpoint sent more bytes than the limit allows");
      yield chunk;
    }
  } catch (thrown) {
    throw unreachable(thrown);
  }
}

/**
 * Converts the error of a failed connection to a fault. The fault quotes the system's message, which contains only host
 * and port of the address.
 */
function unreachable(thrown: unknown): unknown {
  if (thrown instanceof PeerFault) return thrown;
  if (thrown instanceof DeputeError) return new PeerFault(NOT_ALLOWED, thrown.message);
  const why = thrown instanceof Error ? thrown.message : "no answer";
  return new PeerFault(UNREACHABLE, `the endpoint cannot be reached: ${why}`);
}
