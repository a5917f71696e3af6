import { toBinary } from "@bufbuild/protobuf";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type Message, MessageSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { checkValue } from "./values.ts";

/**
 * Refuses an A2A message of more than `maxBytes`, or with data that JSON cannot represent.
 *
 * @param field the place of the message in the request, e.g. `draft.message`
 * @throws DeputeError LIMIT_EXCEEDED, INVALID_REQUEST
 */
export function checkMessage(message: Message, field: string, maxBytes: number): void {
  message.parts.forEach(({ content }, index) => {
    if (content.case === "data") checkValue(content.value, `${field}.parts[${index}].data`, maxBytes);
  });
  if (toBinary(MessageSchema, message).length <= maxBytes) return;
  const description = `more than ${maxBytes} bytes`;
  throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field}: ${description}`, {
    metadata: { limit: `${field}.bytes`, max: String(maxBytes) },
    violations: [{ field, description }],
  });
}

/** Whether a message names the same A2A context as the task, or names no context. (A2A 3.4.3) */
export function isOfContext({ contextId }: Message, { correlationId }: Task): boolean {
  return contextId === "" || contextId === correlationId;
}
