import type { AgentRef } from "@depute/contracts/agenta/delegation/v0/common_pb";
import { type ArtifactType, ArtifactTypeSchema } from "@depute/contracts/agenta/delegation/v0/common_pb";
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

/** How artifacts that are stored here are named. */
export const ARTIFACT_URN = "urn:depute:artifact:";

export type ArtifactVerdict = "matches" | "differs" | "missing" | "not_checked";

/** A piece of evidence, the receipt's or the result's. */
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
  /** The lowest score of a pass. */
  minimumScore: number;
  /** The third parties that the buyer's request names; empty for every one of a proven organization. */
  acceptableVerifiers: readonly string[];
}

/**
 * What a piece of evidence is worth.
 *
 * @param isStored whether bytes with a digest are stored here
 * @param fetched the digest of what was fetched from an address; empty when there was nothing, undefined when it was not
 * asked
 * @throws DeputeError INVALID_REQUEST for a digest in a form that Depute does not check
 */
export function judgeArtifact(
  sha256: (data: Uint8Array) => Uint8Array,
  { uri, digest }: EvidencePiece,
  isStored: (digest: string) => boolean,
  fetched: (uri: string) => string | undefined,
  field: string,
): ArtifactVerdict {
  if (digest !== undefined && !/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw invalid(`${field}.digest`, "sha256: and 64 hexadecimal digits in lower case are needed");
  }
  const scheme = uri.slice(0, 5).toLowerCase();
  if (scheme === "data:") {
    const bytes = dataUriBytes(uri);
    if (bytes === undefined) return "missing";
    return digest === undefined || digestOf(sha256, bytes) === digest ? "matches" : "differs";
  }
  if (uri.startsWith(ARTIFACT_URN)) {
    const named = uri.slice(ARTIFACT_URN.length);
    if (!isStored(named)) return "missing";
    return digest === undefined || digest === named ? "matches" : "differs";
  }
  const found = fetched(uri);
  if (found === undefined) return "not_checked";
  if (found === "") return "missing";
  return digest === undefined || found === digest ? "matches" : "differs";
}

/** The digests of artifacts that evidence says are stored here. */
export function storedDigests(pieces: readonly EvidencePiece[]): string[] {
  const named = pieces.map(({ uri }) => uri).filter((uri) => uri.startsWith(ARTIFACT_URN));
  return [...new Set(named.map((uri) => uri.slice(ARTIFACT_URN.length)))];
}

/** The owners of the agents that a verification is about. */
export interface Owners {
  readonly verifier: Affiliation;
  readonly parties: readonly Affiliation[];
}

/**
 * Whether an agent may judge in the agreed mode (Agenta `verification_policy.mode`): a seller attests, a buyer verifies, and a
 * third party is independent of both.
 *
 * @param owners undefined where no third party is asked for, or an agent is not registered
 * @throws DeputeError CONFLICT_OF_INTEREST
 */
export function assertRole(verifier: AgentRef, terms: Terms, owners: Owners | undefined): void {
  const { mode, seller, buyer, acceptableVerifiers } = terms;
  switch (mode) {
    case VerificationMode.SELLER_ATTESTED:
      if (verifier.agentId === seller.agentId) return;
      throw conflict("seller", `has to be the seller, ${seller.agentId}`);
    case VerificationMode.BUYER_VERIFIED:
      if (verifier.agentId === buyer.agentId) return;
      throw conflict("buyer", `has to be the buyer, ${buyer.agentId}`);
    case VerificationMode.THIRD_PARTY_VERIFIED: {
      if (owners === undefined) throw conflict("third party", "is no registered agent: register it first");
      const fault = thirdPartyFault(owners.verifier, owners.parties, acceptableVerifiers);
      if (fault === undefined) return;
      throw conflict("third party", THIRD_PARTY_FAULTS[fault]);
    }
    default:
      throw conflict("agreed one", "has no role: the offer names no mode of verification");
  }
}

const THIRD_PARTY_FAULTS: Readonly<Record<ThirdPartyFault, string>> = {
  one_owner: "has one owner with the seller or the buyer: ask an agent of another principal and organization",
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

/** A piece of evidence with what it is worth. */
export interface JudgedPiece extends EvidencePiece {
  verdict: ArtifactVerdict;
}

/**
 * A pass needs every required artifact, no digest that differs, a score that reaches the agreed one, and checks that
 * passed or do not apply, one passed at least. Other decisions need nothing.
 *
 * @throws DeputeError EVIDENCE_INSUFFICIENT with everything that is missing
 */
export function assertBorne(result: VerificationResult, terms: Terms, pieces: readonly JudgedPiece[]): void {
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
    const shown = uri.slice(0, 64).toWellFormed();
    if (verdict === "differs") fault("artifacts", `the bytes of ${shown} do not have their digest`);
    if (verdict === "missing") fault("artifacts", `there are no bytes at ${shown}`);
  }
  // NaN reaches nothing.
  if (!(result.score >= terms.minimumScore))
    fault("result.score", `at least ${terms.minimumScore} is agreed`);
  for (const [i, { status }] of result.checks.entries()) {
    if (status === CheckStatus.FAIL) fault(`result.checks[${i}]`, "a check failed");
    if (status === CheckStatus.INCONCLUSIVE) fault(`result.checks[${i}]`, "a check could not be carried out");
  }
  if (!result.checks.some(({ status }) => status === CheckStatus.PASS)) {
    fault("result.checks", "a pass needs a check that passed");
  }
  if (faults.length === 0) return;
  throw new DeputeError(ErrorReason.EVIDENCE_INSUFFICIENT, "the evidence does not bear a pass", {
    violations: faults.slice(0, 50),
  });
}

/** A kind of artifact as Agenta writes it. */
export function artifactWord(type: ArtifactType): string {
  const name = ArtifactTypeSchema.value[type]?.name ?? "ARTIFACT_TYPE_OTHER";
  return name.slice("ARTIFACT_TYPE_".length).toLowerCase();
}
