import { invalid, parseTime } from "@depute/core";
import type { TaskContract } from "./documents.ts";
import { type Compilable, type Known, validateSpec } from "./spec-validation.ts";

/** How far in the future a document's own time may lie, in milliseconds: clocks differ. */
export const MAX_CLOCK_SKEW_MS = 5 * 60_000;

/**
 * Checks a contract as far as that is possible without compiling (DelegateOS 5.1, 6.1 to 6.4). Lengths, patterns and
 * ranges of single members are rules of the contract's message and are not repeated here.
 *
 * @param now milliseconds since the Unix epoch
 * @returns the schemas and patterns that still have to be compiled
 * @throws DeputeError INVALID_REQUEST or UNKNOWN_CHECK, with the field at fault
 */
export function validateContract(contract: TaskContract, now: number, known: Known): Compilable[] {
  const created = timeOf(contract.createdAt, "contract.created_at");
  if (created > now + MAX_CLOCK_SKEW_MS) throw invalid("contract.created_at", "lies in the future");
  const deadline = timeOf(contract.constraints.deadline, "contract.constraints.deadline");
  if (deadline <= created) throw invalid("contract.constraints.deadline", "has to be after createdAt");
  return [
    { field: "contract.task.output_schema", schema: contract.task.outputSchema },
    ...validateSpec(contract.verification, "contract.verification", known),
  ];
}

function timeOf(text: string, field: string): number {
  const time = parseTime(text);
  if (time === undefined) throw invalid(field, "not a time in RFC 3339 with Z");
  return time;
}
