import { create, type DescMessage, type DescService, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import type { Interceptor } from "@connectrpc/connect";
import {
  type BrokenRule,
  brokenRules,
  brokenRulesByProtovalidate,
  DeputeError,
  ErrorReason,
  type FieldViolation,
  timesOutOfRange,
} from "@depute/core";
import { type Manners, NO_MANNERS } from "../service-manners.ts";

/**
 * Checks a message against the rules of its contract, and its times against the range of all of them.
 *
 * @throws DeputeError INVALID_REQUEST naming every field at fault
 */
export function assertValid<Desc extends DescMessage>(schema: Desc, message: Message): void {
  const broken = [...brokenRules(schema, message as never), ...timesOutOfRange(schema, message)];
  if (broken.length === 0) return;
  const violations = broken.map(toFieldViolation);
  const summary = violations.map(({ field, description }) =>
    field === "" ? description : `${field}: ${description}`,
  );
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary.join("; "), { violations });
}

/** google.rpc.BadRequest's form of a broken rule: the field's path, what is wrong, and the rule's id. */
export function toFieldViolation({ field, rule, message }: BrokenRule): FieldViolation {
  return { field: pathToString(field), description: message, reason: rule };
}

/**
 * Plans the rules of services' requests. That takes up to a tenth of a second, which the first calls would wait for and
 * hold the others up.
 */
export function planRules(services: readonly DescService[]): void {
  for (const { methods } of services) {
    for (const { input } of methods) {
      brokenRules(input, create(input));
      brokenRulesByProtovalidate(input, create(input));
    }
  }
}

/** Checks every request message against the rules of its contract before a handler sees it. */
export function validateInterceptor(manners: Manners = NO_MANNERS): Interceptor {
  return (next) => async (request) => {
    const { input } = request.method;
    const own = manners.get(request.service.typeName);
    const prepare = (message: Message) => own?.prepare?.(input, message) ?? message;
    if (!request.stream) {
      const message = prepare(request.message);
      assertValid(input, message);
      return next(message === request.message ? request : { ...request, message });
    }
    return next({ ...request, message: validated(input, request.message, prepare) });
  };
}

async function* validated<T extends Message>(
  schema: DescMessage,
  messages: AsyncIterable<T>,
  prepare: (message: Message) => Message,
): AsyncIterable<T> {
  for await (const received of messages) {
    const message = prepare(received);
    assertValid(schema, message);
    yield message as T;
  }
}
