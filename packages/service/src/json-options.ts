import { createRegistry } from "@bufbuild/protobuf";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";

/** How messages are written as JSON: a refusal within an answer holds its details as `Any`, whose types JSON spells out. */
export const JSON_OPTIONS = { registry: createRegistry(ErrorInfoSchema, BadRequestSchema) };
