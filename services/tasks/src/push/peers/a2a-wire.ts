import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import type { OutboundAnswer } from "@depute/service";
import { A2A_DOMAIN, faultOfReason } from "../rules/a2a-refusal.ts";
import { MALFORMED, PeerFault } from "../rules/refusal.ts";
import { readServerSentEvents } from "../rules/sse.ts";
import { pieces } from "./http-call.ts";
import { MAX_STREAM_BYTES, readAnswer } from "./peer.ts";

/** The headers of every request to an A2A agent over HTTP. (A2A 3.6.1) */
export const A2A_HEADERS = { "a2a-version": "1.0" } as const;

/** Yields the JSON documents of a stream of server-sent events. (A2A 9.4.2, 11.7) */
export async function* documentsOf(answer: OutboundAnswer): AsyncGenerator<JsonValue> {
  for await (const { data } of readServerSentEvents(pieces(answer.body, MAX_STREAM_BYTES))) {
    yield readAnswer(data);
  }
}

/**
 * Reads a message from ProtoJSON. Ignores unknown members, because later versions of A2A may add members. (A2A 5.7)
 *
 * @throws PeerFault ENDPOINT_MALFORMED
 */
export function messageOf<Desc extends DescMessage>(
  schema: Desc,
  json: JsonValue | undefined,
): MessageShape<Desc> {
  try {
    return fromJson(schema, json ?? null, { ignoreUnknownFields: true });
  } catch {
    throw notA2a(`the response is not a ${schema.name}`);
  }
}

/**
 * Finds A2A's error among the details of a google.rpc.Status in JSON.
 *
 * @returns undefined if no detail is an error of A2A
 */
export function faultInDetails(details: unknown, message: string): PeerFault | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const detail of details) {
    if (!isObject(detail) || detail.domain !== A2A_DOMAIN || typeof detail.reason !== "string") continue;
    const fault = faultOfReason(detail.reason, message);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Returns the fault for a response that does not conform to A2A. */
export function notA2a(problem: string): PeerFault {
  return new PeerFault(MALFORMED, `the agent does not conform to A2A: ${problem}`);
}
