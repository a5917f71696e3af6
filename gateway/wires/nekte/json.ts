import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { parseJson, refusalOf } from "@depute/wire";

/**
 * The value of JSON in a `bytes` field, which on gRPC may be anything.
 *
 * @throws DeputeError MALFORMED_JSON, LIMIT_EXCEEDED
 */
export function readJson(bytes: Uint8Array, path: string): Value {
  const parsed = parseJson(bytes, { maxBytes: Number.POSITIVE_INFINITY });
  if (!parsed.ok) throw refusalOf({ ...parsed.error, path: `${path}${parsed.error.path}` });
  return fromJson(ValueSchema, parsed.value as JsonValue);
}
