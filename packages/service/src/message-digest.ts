import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { canonicalJson } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";

/** SHA-256 of a message's canonical JSON, in hexadecimal: the order of members makes no difference. (RFC 8785) */
export function messageDigest<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return sha256Hex(canonicalJson(toJson(schema, message)));
}
