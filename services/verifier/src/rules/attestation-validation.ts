import {
  CanonicalError,
  canonicalBytes,
  DeputeError,
  ErrorReason,
  encodeBase64Url,
  invalid,
  parseTime,
} from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { MAX_CLOCK_SKEW_MS } from "./contract-validation.ts";
import type { Attestation } from "./documents.ts";

/** Largest output, in bytes of JSON: it is measured before anything is done with it. */
export const MAX_OUTPUT_BYTES = 1024 * 1024;

/**
 * Largest output within an attestation, in bytes of canonical JSON: it is signed with the rest, which is made canonical
 * and hashed several times where it arrives. Of a larger output the attestation holds the hash.
 */
export const MAX_HELD_OUTPUT_BYTES = 512 * 1024;

/**
 * Checks what the attestation's message cannot say of itself (DelegateOS 7.1): its time is not to come, its output is
 * of bearable size and has the hash that stands beside it, it names no child twice.
 *
 * @param now milliseconds since the Unix epoch
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function validateAttestation(attestation: Attestation, now: number, engine: CryptoEngine): void {
  const created = parseTime(attestation.createdAt);
  if (created === undefined) throw invalid("attestation.created_at", "not a time in RFC 3339 with Z");
  if (created > now + MAX_CLOCK_SKEW_MS) throw invalid("attestation.created_at", "lies in the future");
  const children = attestation.childAttestations;
  if (new Set(children).size !== children.length) {
    throw invalid("attestation.child_attestations", "names an attestation twice");
  }
  const { output, outputHash } = attestation.result;
  if (output === undefined) return;
  const bytes = bytesOf(output);
  if (bytes.length > MAX_HELD_OUTPUT_BYTES) {
    const problem = `is larger than ${MAX_HELD_OUTPUT_BYTES} bytes; its hash alone may stand in its place`;
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `attestation.result.output ${problem}`, {
      metadata: { limit: "output_bytes", max: String(MAX_HELD_OUTPUT_BYTES) },
      violations: [{ field: "attestation.result.output", description: problem }],
    });
  }
  if (outputHash !== undefined && outputHash !== encodeBase64Url(engine.blake2b256(bytes))) {
    throw invalid("attestation.result.output_hash", "is not the hash of the output beside it");
  }
}

function bytesOf(output: unknown): Uint8Array {
  try {
    return canonicalBytes(output);
  } catch (error) {
    if (error instanceof CanonicalError) throw invalid("attestation.result.output", error.message);
    throw error;
  }
}
