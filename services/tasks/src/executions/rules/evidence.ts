import { type ArtifactType, ArtifactTypeSchema } from "@depute/contracts/agenta/delegation/v0/common_pb";
import type { Artifact } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ArtifactVerdict } from "@depute/contracts/depute/verifier/v1/result_service_pb";

/** What is wrong with a delivery: a word of the failures, and why. */
export interface Fault {
  readonly reason: "OUTPUT_SCHEMA_VIOLATION" | "REQUIRED_EVIDENCE_MISSING" | "DIGEST_MISMATCH";
  readonly message: string;
}

/**
 * What is wrong with the evidence of a delivery, or undefined: every required kind has to be there, with bytes that can be
 * read where they are with the platform, and no digest may be another than that of the bytes. Nothing is fetched from
 * elsewhere, so what lies elsewhere is taken at its word.
 *
 * @param verdicts of the artifacts, in their order
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
    return { reason: "DIGEST_MISMATCH", message: `the bytes do not have their digest: ${kinds}` };
  }
  const there = new Set(
    artifacts.filter((_, at) => verdicts[at] !== MISSING).map(({ artifactType }) => artifactType),
  );
  const missing = required.filter((type) => !there.has(type));
  if (missing.length === 0) return undefined;
  const message = `evidence that the offer or the buyer requires is missing: ${missing.map(artifactWord).join(", ")}`;
  return { reason: "REQUIRED_EVIDENCE_MISSING", message };
}

/** A kind of artifact as the protocol writes it: `result_payload`. */
export function artifactWord(type: ArtifactType): string {
  return (ArtifactTypeSchema.value[type]?.localName ?? "other").toLowerCase();
}
