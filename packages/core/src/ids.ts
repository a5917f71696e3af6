import { v7, validate } from "uuid";

/** A new identifier: UUIDv7 in lower case, so that ids made later sort later, to the millisecond. */
export function newId(): string {
  return v7();
}

/** Whether a text is a UUID of any version in its 36-character form. */
export function isUuid(text: string): boolean {
  return validate(text);
}
