import type { JsonValue } from "@bufbuild/protobuf";
import type { Message } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { textsOf, valueOfParts } from "@depute/wire/a2a";

/** The longest description of a task, in characters. */
const MAX_DESCRIPTION = 16_384;

/** Returns the description of the task that a message creates: the message's texts, cut to MAX_DESCRIPTION. */
export function descriptionOf({ parts }: Message): string {
  const text = textsOf(parts).join("\n");
  return Array.from(text).length <= MAX_DESCRIPTION
    ? text
    : Array.from(text).slice(0, MAX_DESCRIPTION).join("");
}

/** Returns the input that a worker receives for a message: the value of the message's parts. */
export function inputOf({ parts }: Message): JsonValue {
  return valueOfParts(parts);
}
