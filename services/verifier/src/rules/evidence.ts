import type { AgentRef } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import {
  type ArtifactType,
  ArtifactTypeSchema,
} from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  CheckStatus,
  Decision,
  type VerificationResult,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import {
  type Affiliation,
  DeputeError,
  ErrorReason,
  type FieldViolation,
  invalid,
  type ThirdPartyFault,
  thirdPartyFault,
} from "@depute/core";
import { dataUriBytes } from "./data-uri.ts";
import { digestOf } from "./result-hash.ts";

/** URN prefix of the artifacts that this service stores. The artifact's digest follows it. */
export const ARTIFACT_URN = "urn:depute:artifact:";

export type ArtifactVerdict = "matches" | "differs" | "missing" | "not_checked";

/** A piece of evidence: an artifact of the receipt or of the result. */
export interface EvidencePiece {
  artifactType: ArtifactType;
  uri: string;
  digest?: string | undefined;
}

export interface Terms {
  mode: VerificationMode;
  seller: AgentRef;
  buyer: AgentRef;
  requiredArtifacts: readonly ArtifactType[];
  /** The minimum score for the decision PASS. */
  minimumScore: number;
  /**
   * The third parties that the buyer's request accepts. If the list is empty, the buyer accepts any verifier with a
   * proven organization.
   */
  acceptableVerifiers: readonly string[];
}

/**
 * Returns the verdict on a piece of evidence by its digest.
 *
 * @param isStored returns true if the store has bytes with the digest
 * @param fetched returns the digest of the content at a URI; empty if the fetch failed, undefined if the URI was not
 * fetched
 * @throws DeputeError INVALID_REQUEST if Depute does not support the form of the digest
 */
export function verifyArtifact(
  sha256: (data: Uint8Array) => Uint8Array,
  { uri, digest }: EvidencePiece,
  isStored: (digest: string) => boolean,
  fetched: (uri: string) => string | undefined,
  field: string,
): ArtifactVerdict {
  if (digest !== undefined && !/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw invalid(`${field}.digest`, "must be sha256: and 64 hexadecimal digits in lower case");
  }
  const scheme = uri.slice(0, 5).toLowerCase();
  if (scheme === "data:") {
    const bytes = dataUriBytes(uri);
    if (bytes === undefined) return "missing";
    return digest === undefined || digestOf(sha256, bytes) === digest ? "matches" : "differs";
  }
  if (uri.startsWith(ARTIFACT_URN)) {
    const artifactReference = uri.slice(ARTIFACT_URN.length);
    if (!isStored(artifactReference)) return "missing";
    return digest === undefined || digest === artifactReference ? "matches" : "differs";
  }
  const text = fetched(uri);
  if (text === undefined) return "not_checked";
  if (text === "") return "missing";
  return digest === undefined || text === digest ? "matches" : "differs";
}

/** Returns the digests in the URNs of those pieces of evidence that are artifacts of this service. */
export function storedDigests(pieces: readonly EvidencePiece[]): string[] {
  const artifactUris = pieces.map(({ uri }) => uri).filter((uri) => uri.startsWith(ARTIFACT_URN));
  return [...new Set(artifactUris.map((uri) => uri.slice(ARTIFACT_URN.length)))];
}

/**
 * The principal and the organizations of the verifier's agent, and those of the seller's and the buyer's agents
 * (`parties`).
 */
export interface Owners {
  readonly verifier: Affiliation;
  readonly parties: readonly Affiliation[];
}

/**
 * Requires that an agent may verify in the agreed mode (Agenta `verification_policy.mode`). Depending on the mode, the
 * agent must be the seller, the buyer, or a third party independent of both.
 *
 * @param owners the principals and organizations of the agents; undefined if the mode needs no third party, or if an
 * agent is not registered
 * @throws DeputeError CONFLICT_OF_INTEREST
 */
export function assertRole(verifier: AgentRef, terms: Terms, owners: Owners | undefined): void {
  const { mode, seller, buyer, acceptableVerifiers } = terms;
  switch (mode) {
    case VerificationMode.SELLER_ATTESTED:
      if (verifier.agentId === seller.agentId) return;
      throw conflict("seller", `must be the seller, ${seller.agentId}`);
    case VerificationMode.BUYER_VERIFIED:
      if (verifier.agentId === buyer.agentId) return;
      throw conflict("buyer", `must be the buyer, ${buyer.agentId}`);
    case VerificationMode.THIRD_PARTY_VERIFIED: {
      if (owners === undefined) throw conflict("third party", "is not a registered agent: register it first");
      const fault = thirdPartyFault(owners.verifier, owners.parties, acceptableVerifiers);
      if (fault === undefined) return;
      throw conflict("third party", THIRD_PARTY_FAULTS[fault]);
    }
    default:
      throw conflict("agreed one", "has no role: the offer has no verification mode");
  }
}

const THIRD_PARTY_FAULTS: Readonly<Record<ThirdPartyFault, string>> = {
  one_owner:
    "has the same owner as the seller or the buyer: ask an agent of another principal and organization",
  not_named: "is not among the request's metadata.acceptable_verifiers: ask one of them",
  not_proven:
    "has no proven organization: an operator proves it by CreateOrganizationProof, or the buyer's request names the verifier in metadata.acceptable_verifiers",
};

function conflict(role: string, description: string): DeputeError {
  return new DeputeError(ErrorReason.CONFLICT_OF_INTEREST, `the verifier ${description}`, {
    metadata: { role },
    violations: [{ field: "result.verifier_agent", description }],
  });
}

/** A piece of evidence and the verdict on its digest. */
export interface VerifiedPiece extends EvidencePiece {
  verdict: ArtifactVerdict;
}

/**
 * Requires that the evidence supports a pass. A pass needs every required artifact, no wrong digest, and the agreed
 * score. No check may be failed or inconclusive, and at least one check must have passed. Other decisions need no
 * evidence.
 *
 * @throws DeputeError EVIDENCE_INSUFFICIENT, listing everything that is missing
 */
export function assertPassSupported(
  result: VerificationResult,
  terms: Terms,
  pieces: readonly VerifiedPiece[],
): void {
  if (result.decision !== Decision.PASS) return;
  const faults: FieldViolation[] = [];
  const fault = (field: string, description: string) => faults.push({ field, description });
  for (const required of terms.requiredArtifacts) {
    const usable = pieces.some(
      ({ artifactType, verdict }) =>
        artifactType === required && (verdict === "matches" || verdict === "not_checked"),
    );
    if (!usable) fault("artifacts", `${artifactWord(required)} is required`);
  }
  for (const { uri, verdict } of pieces) {
    const shortUri = uri.slice(0, 64).toWellFormed();
    if (verdict === "differs") fault("artifacts", `the content of ${shortUri} does not match its digest`);
    if (verdict === "missing") fault("artifacts", `there is no content at ${shortUri}`);
  }
  // The comparison is negated, so that it also refuses NaN.
  if (!(result.score >= terms.minimumScore))
    fault("result.score", `is below the agreed minimum of ${terms.minimumScore}`);
  for (const [i, { status }] of result.checks.entries()) {
    if (status === CheckStatus.FAIL) fault(`result.checks[${i}]`, "a check failed");
    if (status === CheckStatus.INCONCLUSIVE) fault(`result.checks[${i}]`, "a check is inconclusive");
  }
  if (!result.checks.some(({ status }) => status === CheckStatus.PASS)) {
    fault("result.checks", "a pass needs at least one passed check");
  }
  if (faults.length === 0) return;
  throw new DeputeError(
    ErrorReason.EVIDENCE_INSUFFICIENT,
    "the evidence does not support a pass; the violations list what is missing",
    {
      violations: faults.slice(0, 50),
    },
  );
}

/** Returns an artifact type in Agenta's spelling. */
export function artifactWord(type: ArtifactType): string {
  const name = ArtifactTypeSchema.value[type]?.name ?? "ARTIFACT_TYPE_OTHER";
  return name.slice("ARTIFACT_TYPE_".length).toLowerCase();
}
