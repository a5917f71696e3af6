import { createRegistry, type DescMethod, getOption } from "@bufbuild/protobuf";
import { refuses_unknown_fields } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "@depute/contracts/google/rpc/error_details_pb";

/**
 * Options for messages in JSON: unknown fields are ignored. Refusals within responses need the registry, because their
 * details are `Any` messages.
 */
export const LENIENT = {
  registry: createRegistry(ErrorInfoSchema, BadRequestSchema, RetryInfoSchema),
  ignoreUnknownFields: true,
};
/**
 * The options of LENIENT, except that an unknown field is refused. They are for methods whose contract requires this
 * refusal.
 */
export const STRICT: JsonOptions = { ...LENIENT, ignoreUnknownFields: false };

export type JsonOptions = typeof LENIENT;

/** Whether a method refuses JSON requests with a field that its contract does not have. */
export function refusesUnknownFields(method: DescMethod): boolean {
  return getOption(method, refuses_unknown_fields);
}

/** Returns the JSON options for a method's requests and responses. */
export function jsonOptionsOf(method: DescMethod): JsonOptions {
  return refusesUnknownFields(method) ? STRICT : LENIENT;
}
