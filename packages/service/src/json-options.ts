import { createRegistry, type DescMethod, getOption } from "@bufbuild/protobuf";
import { refuses_unknown_fields } from "@depute/contracts/depute/limits/v1/options_pb";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";

/** How messages are written as JSON: a refusal within an answer holds its details as `Any`, whose types JSON spells out. */
export const LENIENT = {
  registry: createRegistry(ErrorInfoSchema, BadRequestSchema),
  ignoreUnknownFields: true,
};
/** The same for methods that refuse fields that their contract does not have. */
export const STRICT: JsonOptions = { ...LENIENT, ignoreUnknownFields: false };

export type JsonOptions = typeof LENIENT;

/** Whether requests in JSON with a field that the contract does not have are refused. */
export function refusesUnknownFields(method: DescMethod): boolean {
  return getOption(method, refuses_unknown_fields);
}

/** How a method's requests are read as JSON, and its answers written. */
export function jsonOptionsOf(method: DescMethod): JsonOptions {
  return refusesUnknownFields(method) ? STRICT : LENIENT;
}
