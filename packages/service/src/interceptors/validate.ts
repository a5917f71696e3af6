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
  type Timers,
  timesOutOfRange,
} from "@depute/core";
import { rolesOpenKey } from "../call-values.ts";
import { type Manners, NO_MANNERS } from "../service-manners.ts";

/**
 * Checks a message against the rules of its contract, and its timestamps against the valid range.
 *
 * @throws DeputeError INVALID_REQUEST that names every invalid field
 */
export function assertValid<Desc extends DescMessage>(schema: Desc, message: Message): void {
  const brokenOfContract = brokenRules(schema, message as never);
  const outOfRange = timesOutOfRange(schema, message);
  if (brokenOfContract.length === 0 && outOfRange.length === 0) return;
  const broken = [...brokenOfContract, ...outOfRange];
  const violations = broken.map(toFieldViolation);
  const summary = violations.map(({ field, description }) =>
    field === "" ? description : `${field}: ${description}`,
  );
  throw new DeputeError(ErrorReason.INVALID_REQUEST, summary.join("; "), { violations });
}

/**
 * Converts a broken rule to a violation of google.rpc.BadRequest, with the field's path, the fault, and the id of the
 * rule.
 */
export function toFieldViolation({ field, rule, message }: BrokenRule): FieldViolation {
  return { field: pathToString(field), description: message, reason: rule };
}

/**
 * Compiles the validation rules of the services' requests, one request in each turn of the event loop. Otherwise the
 * first calls would wait for the compilation, up to a tenth of a second.
 */
export async function planRules(services: readonly DescService[], { nextTurn }: Timers): Promise<void> {
  for (const { methods } of services) {
    for (const { input } of methods) {
      await nextTurn();
      brokenRules(input, create(input));
      brokenRulesByProtovalidate(input, create(input));
    }
  }
}

/**
 * Checks every request message against the rules of its contract before a handler gets the message. The interceptor
 * skips a call whose roles only another process can check, because that process validates the message.
 */
export function validateInterceptor(manners: Manners = NO_MANNERS): Interceptor {
  return (next) => (request) => {
    const { input } = request.method;
    if (request.contextValues.get(rolesOpenKey)) return next(request);
    const serviceManners = manners.get(request.service.typeName);
    const prepare = (message: Message) => serviceManners?.prepare?.(input, message) ?? message;
    if (!request.stream) {
      let message: Message;
      try {
        message = prepare(request.message);
        assertValid(input, message);
      } catch (refusal) {
        return Promise.reject(refusal);
      }
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
