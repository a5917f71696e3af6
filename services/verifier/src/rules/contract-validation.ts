import { invalid, parseTime } from "@depute/core";
import type { TaskContract } from "./documents.ts";
import { type Compilable, type ContractNames, validateSpec } from "./spec-validation.ts";

/** Maximum time by which a document's time may be after this service's clock, in milliseconds. */
export const MAX_CLOCK_SKEW_MS = 5 * 60_000;

/**
 * Validates a contract without compiling its schemas and patterns (DelegateOS 5.1, 6.1 to 6.4). The rules in the
 * protobuf contract have already checked lengths, patterns and ranges of single members.
 *
 * @param now epoch milliseconds
 * @returns the schemas and patterns to compile
 * @throws DeputeError INVALID_REQUEST or UNKNOWN_CHECK, naming the faulty field
 */
export function validateContract(
  contract: TaskContract,
  now: number,
  contractNames: ContractNames,
): Compilable[] {
  const created = timeOf(contract.createdAt, "contract.created_at");
  if (created > now + MAX_CLOCK_SKEW_MS) throw invalid("contract.created_at", "must not be in the future");
  const deadline = timeOf(contract.constraints.deadline, "contract.constraints.deadline");
  if (deadline <= created) throw invalid("contract.constraints.deadline", "must be after createdAt");
  return [
    { field: "contract.task.output_schema", schema: contract.task.outputSchema },
    ...validateSpec(contract.verification, "contract.verification", contractNames),
  ];
}

function timeOf(text: string, field: string): number {
  const time = parseTime(text);
  if (time === undefined) throw invalid(field, "must be a time in RFC 3339 with Z");
  return time;
}
