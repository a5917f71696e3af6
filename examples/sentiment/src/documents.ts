import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { decode } from "@depute/wire";

/** Converts the JSON document of a protocol to its message. */
export function message<Desc extends DescMessage>(schema: Desc, document: unknown): MessageShape<Desc> {
  const decoded = decode(schema, document as JsonValue);
  if (!decoded.ok) throw new Error(`${schema.name}${decoded.error.path}: ${decoded.error.message}`);
  return decoded.message;
}
