import {
  type ArtifactType,
  ArtifactTypeSchema,
} from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import type { Artifact } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ArtifactVerdict } from "@depute/contracts/depute/verifier/v1/result_service_pb";

/** A fault of a delivery: its failure reason, and an explanation. */
export interface Fault {
  readonly reason: "OUTPUT_SCHEMA_VIOLATION" | "REQUIRED_EVIDENCE_MISSING" | "DIGEST_MISMATCH";
  readonly message: string;
}

/**
 * Returns the fault of a delivery's evidence; undefined for none. The delivery's artifacts are its evidence. Every
 * required kind must be present, and each digest must match. An artifact whose bytes are missing from the platform's
 * store, or from an address that the verifier may fetch, counts as absent. An artifact at any other address counts as
 * present, unchecked.
 *
 * @param verdicts the verdicts on the artifacts, in the same order
 */
export function evidenceFault(
  required: readonly ArtifactType[],
  artifacts: readonly Artifact[],
  verdicts: readonly ArtifactVerdict[],
): Fault | undefined {
  const { DIFFERS, MISSING } = ArtifactVerdict;
  const wrong = artifacts.filter((_, at) => verdicts[at] === DIFFERS);
  if (wrong.length > 0) {
    const kinds = wrong.map(({ artifactType }) => artifactWord(artifactType)).join(", ");
    return { reason: "DIGEST_MISMATCH", message: `the bytes do not match their digests: ${kinds}` };
  }
  const there = new Set(
    artifacts.filter((_, at) => verdicts[at] !== MISSING).map(({ artifactType }) => artifactType),
  );
  const missing = required.filter((type) => !there.has(type));
  if (missing.length === 0) return undefined;
  const message = `evidence that the offer or the buyer requires is missing: ${missing.map(artifactWord).join(", ")}`;
  return { reason: "REQUIRED_EVIDENCE_MISSING", message };
}

/** Returns a kind of artifact in the protocol's spelling, such as `result_payload`. */
export function artifactWord(type: ArtifactType): string {
  return (ArtifactTypeSchema.value[type]?.localName ?? "other").toLowerCase();
}
