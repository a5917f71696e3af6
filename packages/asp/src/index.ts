export { type Appended, ASP_VERSION, append } from "./append.ts";
export type { AgentFacts, AppendContext } from "./context.ts";
export { type WorkState, workOf } from "./delegations.ts";
export { DISPUTE_SEVERITY, type DisputeReason, disputesOf } from "./disputes.ts";
export { recipientOf } from "./effects.ts";
export {
  type EvidencePlace,
  evidenceOf,
  evidenceReference,
  evidenceReferences,
  verifyEvidence,
} from "./evidence.ts";
export { MAX_DISPUTE_BYTES, MAX_FILED_DISPUTES, refusalOfDispute } from "./filed-disputes.ts";
export {
  type Digest,
  digestOf,
  holdsIntegrity,
  SIGNATURE_TAG,
  seal,
  signDigest,
  verifyDigest,
} from "./integrity.ts";
export * from "./limits.ts";
export { type Outcome, outcomesOf } from "./outcomes.ts";
export { howFound } from "./parties.ts";
export {
  type EcKey,
  isEs256,
  jwkThumbprint,
  type ProofHolder,
  type ProofRules,
  type ProofTarget,
  type Proven,
  verifyDpopProof,
} from "./proof.ts";
export {
  MAX_TRANSCRIPT_BYTES,
  type ReadTranscript,
  type ReadTranscriptKeys,
  readTranscript,
  readTranscriptKeys,
  stateName,
} from "./read-transcript.ts";
export {
  isRetryable,
  type LimitCode,
  REFUSALS,
  type ReachedLimit,
  type Refusal,
  type RefusalCode,
  type RefusalFamily,
} from "./refusal.ts";
export {
  FIRST_PREVIOUS_HASH,
  idleSession,
  isTerminal,
  type ObjectKind,
  type ObjectStatus,
  type Obligation,
  objectOf,
  objectsOf,
  type Party,
  type PeerRating,
  partyOf,
  type Session,
  type SessionObject,
} from "./session.ts";
export { IDENTITY_TYPE, INVITATION_TYPE, RESOLUTION_TYPE, RESULT_TYPE } from "./subject.ts";
export { type Actor, type Next, type Row, rowFor, type Subject, TABLE } from "./table.ts";
export { advance, nextDeadlineMs } from "./time.ts";
export {
  type Entry,
  exportTranscript,
  type SealStatus,
  TRANSCRIPT_FORMAT,
  type TranscriptFault,
  type TranscriptVerdict,
  type VerifyOptions,
  verifySteps,
  verifyTranscript,
} from "./transcript.ts";
export {
  entryHash,
  hashText,
  type PlatformKeys,
  SEAL_TAG,
  sealTranscript,
  sessionHead,
  signatureText,
  verifySeal,
} from "./transcript-seal.ts";
export { viewOf } from "./view.ts";
