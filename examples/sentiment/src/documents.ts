import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { decode } from "@depute/wire";

/** The message of a family's JSON document. */
export function message<Desc extends DescMessage>(schema: Desc, document: unknown): MessageShape<Desc> {
  const decoded = decode(schema, document as JsonValue);
  if (!decoded.ok) throw new Error(`${schema.name}${decoded.error.path}: ${decoded.error.message}`);
  return decoded.message;
}
