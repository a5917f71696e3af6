import type { DescMessage, Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { DeputeError, ErrorReason, type FieldViolation } from "@depute/core";

const patterns = new Map<string, RegExp>();

// The patterns are the contracts' own, linted and linear, so the platform's RegExp is safe, and twice as fast as RE2.
function regexMatch(pattern: string, against: string): boolean {
  let regex = patterns.get(pattern);
  if (regex === undefined) {
    regex = new RegExp(pattern, "u");
    patterns.set(pattern, regex);
  }
  return regex.test(against);
}

const validator = createValidator({ regexMatch });

/**
 * Checks a message against the rules of its contract.
 *
 * @throws DeputeError INVALID_REQUEST naming every field at fault
 */
export function assertValid<Desc extends DescMessage>(schema: Desc, message: Message): void {
  const result = validator.validate(schema, message as never);
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  const violations = result.violations.map(toFieldViolation);
  const summary = violations.map(({ field, description }) =>
    field === "" ? description : `${field}: ${description}`,
  );
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary.join("; "), { violations });
}

/** google.rpc.BadRequest's form of a broken rule: the field's path, what is wrong, and the rule's id. */
export function toFieldViolation(violation: Violation): FieldViolation {
  return { field: pathToString(violation.field), description: violation.message, reason: violation.ruleId };
}

/** Checks every request message against the rules of its contract before a handler sees it. */
export function validateInterceptor(): Interceptor {
  return (next) => async (request) => {
    if (!request.stream) {
      assertValid(request.method.input, request.message);
      return next(request);
    }
    return next({ ...request, message: validated(request.method.input, request.message) });
  };
}

async function* validated<T extends Message>(
  schema: DescMessage,
  messages: AsyncIterable<T>,
): AsyncIterable<T> {
  for await (const message of messages) {
    assertValid(schema, message);
    yield message;
  }
}
