import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type CallOptions, createClient, type Transport } from "@connectrpc/connect";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import type { DeputeError } from "@depute/core";
import type { SchemaViolation } from "./rules/invalid-arguments.ts";

/** Checks values against schemas of servers, isolated from this process and within limits of time and memory. */
export interface SchemaCheck {
  /**
   * Checks a value against a JSON Schema.
   *
   * @returns the violations, at most 20; empty if the value fits
   * @throws DeputeError SCHEMA_INVALID, UNSUPPORTED_PATTERN, CHECK_TIMEOUT, LIMIT_EXCEEDED, DEPENDENCY_UNAVAILABLE
   */
  violations(
    schema: unknown,
    value: unknown,
    signal: AbortSignal | undefined,
  ): Promise<readonly SchemaViolation[]>;
}

export interface PlatformSchemaCheckOptions {
  readonly verifier: Transport;
  /** Returns the options of each call, with the proxy's own credentials. */
  callOptions(): CallOptions;
  /** Converts a thrown value to a DeputeError. */
  refusalIn(thrown: unknown): DeputeError;
}

/** Returns a check that runs in Depute's verifier, whose threads isolate untrusted schemas. */
export function platformSchemaCheck({
  verifier,
  callOptions,
  refusalIn,
}: PlatformSchemaCheckOptions): SchemaCheck {
  const client = createClient(VerificationService, verifier);
  return {
    async violations(schema, value, signal) {
      try {
        const { violations } = await client.checkSchema(
          { schema: fromJson(ValueSchema, schema as JsonValue), valueJson: JSON.stringify(value) },
          { ...callOptions(), ...(signal === undefined ? {} : { signal }) },
        );
        return violations;
      } catch (thrown) {
        throw refusalIn(thrown);
      }
    },
  };
}
