/** The fault of one field, as the JSON decoder of protobuf describes it. */
export interface JsonFieldFault {
  /** The name of the field in the contract, without the path to its message. */
  readonly field: string;
  /** What is wrong with the value, such as `expected string, got 5`. */
  readonly problem: string;
}

const FIELD_FAULT = /^cannot decode (?:field|oneof) [\w.]+\.(\w+) from JSON(?:: (.*))?$/s;
const UNKNOWN_FIELD = /^cannot decode message [\w.]+ from JSON: key "(.*)" is unknown$/s;

/** Maximum number of characters that a refusal quotes from the decoder's description of a fault. */
const MAX_PROBLEM = 200;
/** Maximum number of characters of a name that the caller invented. */
const MAX_NAME = 64;

/** Reads a message of the decoder. Returns undefined if the message describes no single field. */
export function jsonFieldFault(text: string): JsonFieldFault | undefined {
  const [, unknown] = UNKNOWN_FIELD.exec(text) ?? [];
  if (unknown !== undefined) {
    const problem = "is not a field of this request: omit it, or correct its spelling";
    return { field: unknown.slice(0, MAX_NAME).toWellFormed(), problem };
  }
  const [, field, problem = "has a value of another type"] = FIELD_FAULT.exec(text) ?? [];
  return field === undefined ? undefined : { field, problem: problem.slice(0, MAX_PROBLEM).toWellFormed() };
}
