import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { type AttestationResult, AttestationType } from "@depute/contracts/delegateos/v0/attestation_pb";
import { CanonicalError, canonicalBytes, encodeBase64Url, invalid } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import type { TaskRecord } from "../rules/record.ts";
import type { TasksContext } from "./context.ts";

/**
 * Checks the attestation that a worker names. It must be a recorded success that the delegate signed. It must name the
 * task's contract and delegation, and cover this output. (DelegateOS 7.1)
 *
 * @throws DeputeError INVALID_REQUEST, ATTESTATION_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
export async function requireOwnAttestation(
  { dependencies }: TasksContext,
  { task, agentPrincipal }: TaskRecord,
  attestationId: string,
  output: Value,
  options: CallOptions,
): Promise<void> {
  if (attestationId === "") return;
  const { attestation } = await dependencies.attestations.getAttestation({ attestationId }, options);
  const refuse = (problem: string) => invalid("attestation_id", `the attestation is ${problem}`);
  if (attestation?.principal !== agentPrincipal) throw refuse("not signed by the delegate");
  if (attestation.contractId !== task.contractId) throw refuse("for another contract");
  if (task.delegationId !== "" && attestation.delegationId !== task.delegationId) {
    throw refuse("for another delegation");
  }
  if (attestation.type !== AttestationType.COMPLETION) throw refuse("not for a completion");
  if (attestation.result?.success !== true) throw refuse("for a failure");
  if (!isAbout(attestation.result, output)) throw refuse("for another output");
}

/** Whether an attestation covers this output. An attestation that names no output covers every output. */
function isAbout({ output, outputHash }: AttestationResult, givenOutput: Value): boolean {
  const bytes = canonicalOf(givenOutput);
  if (output !== undefined && !bytes.equals(canonicalOf(output))) return false;
  return outputHash === undefined || outputHash === encodeBase64Url(nativeEngine.blake2b256(bytes));
}

/** @throws DeputeError INVALID_REQUEST for a text that JSON cannot hold */
function canonicalOf(value: Value): Buffer {
  try {
    return Buffer.from(canonicalBytes(toJson(ValueSchema, value)));
  } catch (error) {
    if (error instanceof CanonicalError) throw invalid("output.full", error.message);
    throw error;
  }
}
