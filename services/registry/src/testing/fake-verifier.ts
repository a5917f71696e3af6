import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { defineService } from "@depute/service";

/** The calls that a fake verifier received, and its behaviour on the next calls. */
export interface FakeVerifier {
  /** The schema and the value of each call, as JSON; the value is undefined for a call without a value. */
  readonly calls: [schema: string, value: string | undefined][];
  /** The error with which the fake answers every call; absent for none. */
  failure?: Error | undefined;
  /** Runs during each call, before the fake verifier responds. */
  during?: (() => Promise<unknown>) | undefined;
}

const TYPES = ["object", "string", "number"];

/** A fake verifier that checks only the keyword `type`. */
export function fakeVerifier(fake: FakeVerifier) {
  return defineService({
    name: "verifier",
    settings: {},
    descriptors: [VerificationService],
    start: async () => ({
      routes: (router) => {
        router.rpc(VerificationService.method.checkSchema, async (request) => {
          const schema = toJson(ValueSchema, request.schema as never) as { type?: string };
          const value = request.value === undefined ? undefined : toJson(ValueSchema, request.value);
          fake.calls.push([JSON.stringify(schema), value === undefined ? undefined : JSON.stringify(value)]);
          await fake.during?.();
          if (fake.failure !== undefined) throw fake.failure;
          const { type } = schema;
          if (type !== undefined && !TYPES.includes(type)) {
            const description = `type: ${type} is no type`;
            throw new DeputeError(ErrorReason.SCHEMA_INVALID, `schema: ${description}`, {
              violations: [{ field: "schema", description }],
            });
          }
          const fits = value === undefined || type === undefined || typeof value === type;
          return { violations: fits ? [] : [{ path: "", message: `must be ${type}` }] };
        });
      },
      close: async () => {},
    }),
  });
}
