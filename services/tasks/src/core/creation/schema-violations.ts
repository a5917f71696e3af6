import { fromJson, toJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { FieldViolation } from "@depute/core";
import type { Dependencies } from "../dependencies.ts";

/**
 * Finds the places where a value violates a user's schema. Only the verifier service runs such schemas.
 *
 * @param schema JSON in UTF-8
 * @param field the place of the value in the request; the function appends the JSON pointer into the value
 */
export async function schemaViolations(
  { verification }: Dependencies,
  schema: Uint8Array,
  value: Value,
  field: string,
  options: CallOptions,
): Promise<FieldViolation[]> {
  const parsed = fromJson(ValueSchema, JSON.parse(new TextDecoder().decode(schema)));
  const { violations } = await verification.checkSchema(
    { schema: parsed, valueJson: toJsonString(ValueSchema, value) },
    options,
  );
  return violations.map(({ path, message }) => ({ field: `${field}${path}`, description: message }));
}
