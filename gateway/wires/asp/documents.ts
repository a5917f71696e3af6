import type { IncomingHttpHeaders } from "node:http";
import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { mediaTypeOf } from "@depute/service";
import { decodeValid, parseJson, refusalOf } from "@depute/wire";
import type { Body } from "../../edge/route.ts";
import { ASP_MSGPACK, parseMsgpack, toMsgpack } from "./msgpack.ts";

const ASP_JSON = "application/asp+json";
/** Media types of requests and responses: ASP's own type, plain JSON, and MessagePack. */
export const ASP_TYPES: readonly string[] = [ASP_JSON, "application/json", ASP_MSGPACK];

/** Writes a document in the format that the client accepts. */
export function writeAsp(body: JsonValue, headers: IncomingHttpHeaders): { bytes: Uint8Array; type: string } {
  const type = typeFor(headers);
  const bytes = type === ASP_MSGPACK ? toMsgpack(body) : Buffer.from(JSON.stringify(body));
  return { bytes, type };
}

/**
 * Returns the media type of a response: one of ASP_TYPES that the `accept` header names. If the header names none,
 * the response to a MessagePack body is MessagePack, and every other response is ASP_JSON.
 */
function typeFor({ accept = "", "content-type": sent = "" }: IncomingHttpHeaders): string {
  const accepted = accept.toLowerCase();
  if (accepted.includes(ASP_JSON)) return ASP_JSON;
  if (accepted.includes(ASP_MSGPACK)) return ASP_MSGPACK;
  if (accepted.includes("application/json")) return "application/json";
  return mediaTypeOf(sent) === ASP_MSGPACK ? ASP_MSGPACK : ASP_JSON;
}

/**
 * Reads the document in a body.
 *
 * @throws DeputeError MALFORMED_JSON, INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function readAsp<Desc extends DescMessage>(schema: Desc, body: Body | undefined): MessageShape<Desc> {
  if (body === undefined) throw new Error("the request must have a body");
  const { bytes, type } = body;
  const parsed = type === ASP_MSGPACK ? parseMsgpack(bytes) : parseJson(bytes, { maxBytes: bytes.length });
  if (!parsed.ok) throw refusalOf(parsed.error);
  const decoded = decodeValid(schema, parsed.value);
  if (!decoded.ok) throw refusalOf(...decoded.errors);
  return decoded.message;
}
