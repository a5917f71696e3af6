import type { CallOptions } from "@connectrpc/connect";
import { invalid } from "@depute/core";
import type { TaskRecord } from "../rules/record.ts";
import type { TasksContext } from "./context.ts";

/**
 * A worker's attestation has to be of this work: recorded with the verifier, signed by the delegate, for the task's
 * contract and delegation. (DelegateOS 7.1)
 *
 * @throws DeputeError INVALID_REQUEST, ATTESTATION_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
export async function requireOwnAttestation(
  { dependencies }: TasksContext,
  { task, agentPrincipal }: TaskRecord,
  attestationId: string,
  options: CallOptions,
): Promise<void> {
  if (attestationId === "") return;
  const { attestation } = await dependencies.attestations.getAttestation({ id: attestationId }, options);
  const refuse = (what: string) => invalid("attestation_id", `the attestation is ${what}`);
  if (attestation?.principal !== agentPrincipal) throw refuse("not signed by the delegate");
  if (attestation.contractId !== task.contractId) throw refuse("of another contract");
  if (task.delegationId !== "" && attestation.delegationId !== task.delegationId) {
    throw refuse("of another delegation");
  }
}
