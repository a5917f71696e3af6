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

/** Maximum size of an output in bytes of JSON. The service checks it before any other step. */
export const MAX_OUTPUT_BYTES = 1024 * 1024;

/**
 * Maximum size of an output within an attestation, in bytes of canonical JSON. For a larger output, the attestation
 * must contain only the hash, because the service canonicalizes and hashes an attestation several times.
 */
export const MAX_HELD_OUTPUT_BYTES = 512 * 1024;

/**
 * Validates an attestation by those rules of DelegateOS 7.1 that the protobuf contract cannot express. The time must
 * not be in the future. The output must be within the limit and match its hash. The children must be distinct.
 *
 * @param now epoch milliseconds
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function validateAttestation(attestation: Attestation, now: number, engine: CryptoEngine): void {
  const created = parseTime(attestation.createdAt);
  if (created === undefined) throw invalid("attestation.created_at", "must be a time in RFC 3339 with Z");
  if (created > now + MAX_CLOCK_SKEW_MS) throw invalid("attestation.created_at", "must not be in the future");
  const children = attestation.childAttestations;
  if (new Set(children).size !== children.length) {
    throw invalid("attestation.child_attestations", "contains an id twice");
  }
  const { output, outputHash } = attestation.result;
  if (output === undefined) return;
  const bytes = bytesOf(output);
  if (bytes.length > MAX_HELD_OUTPUT_BYTES) {
    const problem = `is larger than ${MAX_HELD_OUTPUT_BYTES} bytes; send only its hash`;
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `attestation.result.output ${problem}`, {
      metadata: { limit: "output_bytes", max: String(MAX_HELD_OUTPUT_BYTES) },
      violations: [{ field: "attestation.result.output", description: problem }],
    });
  }
  if (outputHash !== undefined && outputHash !== encodeBase64Url(engine.blake2b256(bytes))) {
    throw invalid("attestation.result.output_hash", "does not match the output");
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
