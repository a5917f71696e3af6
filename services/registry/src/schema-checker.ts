import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type CallOptions,
  type Client,
  Code,
  ConnectError,
  createClient,
  type Transport,
} from "@connectrpc/connect";
import {
  SchemaDialect,
  VerificationService,
} from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { DeputeError, ErrorReason, type FieldViolation } from "@depute/core";
import { fromConnectError } from "@depute/service";
import { countChecks, type SchemaToCheck } from "./rules/schema-checks.ts";

/** Maximum number of calls to the verifier for one publication. */
export const MAX_SCHEMA_CHECKS = 2_000;

/** Maximum number of concurrent calls to the verifier. */
const CONCURRENCY = 4;

/**
 * Errors by which the verifier states that a schema is invalid, has an unsupported pattern, or takes too long to check.
 */
const FAULTS_OF_THE_SCHEMA: readonly ErrorReason[] = [
  ErrorReason.SCHEMA_INVALID,
  ErrorReason.UNSUPPORTED_PATTERN,
  ErrorReason.CHECK_TIMEOUT,
  ErrorReason.INVALID_REQUEST,
];

/** Checks published schemas by calls to the verifier, which can stop a compilation that takes too long. */
export interface SchemaChecker {
  /**
   * Compiles each schema and checks its examples.
   *
   * @throws DeputeError SCHEMA_INVALID naming every faulty schema and example; LIMIT_EXCEEDED; DEADLINE_EXCEEDED;
   * DEPENDENCY_UNAVAILABLE; ConnectError when the call was cancelled
   */
  check(schemas: readonly SchemaToCheck[], options: CallOptions): Promise<void>;
}

/** Creates a checker that calls the verifier behind `transport`. */
export function createSchemaChecker(transport: Transport): SchemaChecker {
  const verifier = createClient(VerificationService, transport);
  return {
    async check(schemas, options) {
      if (countChecks(schemas) > MAX_SCHEMA_CHECKS) {
        throw new DeputeError(
          ErrorReason.LIMIT_EXCEEDED,
          "too many schemas and examples in one publication; publish fewer",
          {
            metadata: { limit: "schema_checks", max: String(MAX_SCHEMA_CHECKS) },
          },
        );
      }
      const violationLists: FieldViolation[][] = schemas.map(() => []);
      const indexes = schemas.keys();
      let failed = false;
      const worker = async () => {
        for (const index of indexes) {
          if (failed) return;
          try {
            violationLists[index] = await checkSchema(verifier, schemas[index] as SchemaToCheck, options);
          } catch (error) {
            failed = true;
            throw error;
          }
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, worker));
      const violations = violationLists.flat();
      if (violations.length === 0) return;
      const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
      throw new DeputeError(ErrorReason.SCHEMA_INVALID, summary, { violations });
    },
  };
}

async function checkSchema(
  verifier: Client<typeof VerificationService>,
  { field, schema, examples }: SchemaToCheck,
  options: CallOptions,
): Promise<FieldViolation[]> {
  const foundViolations: FieldViolation[] = [];
  const ask = async (value: JsonValue | undefined) => {
    const { violations } = await verifier.checkSchema(
      {
        schema: fromJson(ValueSchema, schema),
        dialect: SchemaDialect.SCHEMA_DIALECT_2020_12,
        ...(value === undefined ? {} : { value: fromJson(ValueSchema, value) }),
      },
      options,
    );
    return violations;
  };
  try {
    if (examples.length === 0) await ask(undefined);
    for (const example of examples) {
      for (const { path, message } of await ask(example.value)) {
        const where = path === "" ? "" : `${path} `;
        foundViolations.push({
          field: example.field,
          description: `does not match its schema: ${where}${message}`,
        });
      }
    }
    return foundViolations;
  } catch (caught) {
    const error = refusal(caught, field);
    if (!FAULTS_OF_THE_SCHEMA.includes(error.reason)) throw error;
    return [{ field, description: descriptionOf(error) }];
  }
}

/** Returns the description of a fault, without the field name of the verifier's request. */
function descriptionOf({ violations, message }: DeputeError): string {
  return violations.map(({ description }) => description).join("; ") || message;
}

/** Converts the error of a call to the verifier to the registry's error. */
function refusal(caught: unknown, field: string): DeputeError {
  // The caller has cancelled its call, so no error needs to be converted.
  if (caught instanceof ConnectError && caught.code === Code.Canceled) throw caught;
  const error = fromConnectError(caught);
  switch (error.reason) {
    case ErrorReason.LIMIT_EXCEEDED:
      return error.with({
        message: `${field}: ${error.message}`,
        violations: [{ field, description: descriptionOf(error) }],
        cause: caught,
      });
    case ErrorReason.DEADLINE_EXCEEDED:
      return error;
    default:
      if (FAULTS_OF_THE_SCHEMA.includes(error.reason)) return error;
      return new DeputeError(
        ErrorReason.DEPENDENCY_UNAVAILABLE,
        "schemas cannot be checked now; try again later",
        {
          metadata: { service: "verifier" },
          cause: caught,
        },
      );
  }
}
