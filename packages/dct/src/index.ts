export * from "./attenuate.ts";
export {
  AUTHORITY_BUNDLE_FORMAT,
  type AuthorityBundle,
  type AuthorityStatement,
  authoritySigningDigest,
  type BlockValidity,
  type LogProof,
  MAX_AUTHORITY_BUNDLE,
  type StatedBlock,
  type StatedDecision,
  type StatedReceipt,
  type StatedToolCall,
  signAuthorityBundle,
} from "./authority-bundle.ts";
export type { BundleCheck } from "./authority-subject.ts";
export * from "./authority-verdict.ts";
export { allows, contains, isSubset, type Level, type SubContractRule, walkChain } from "./chain.ts";
export type { Presentation, RevocationView, VerificationContext } from "./context.ts";
export * from "./create.ts";
export * from "./dct-engine.ts";
export * from "./delegation.ts";
export { DENIAL_TYPES, type DenialReason, type DenialType, TokenError } from "./denial.ts";
export { portableEngine } from "./engine/portable.ts";
export { EngineError, selfTest } from "./engine/self-test.ts";
export { SIGNATURE_VECTORS, type SignatureVector } from "./engine/vectors.ts";
export type { CryptoEngine } from "./engine.ts";
export { matches, type Path, type Pattern, parsePattern, parseResource } from "./glob.ts";
export * from "./limits.ts";
export {
  type IdKind,
  type IdRule,
  isId,
  isKnownCapability,
  isName,
  NAMESPACES,
  type NamespaceEntry,
  NamespaceRegistry,
  newId,
  splitRequirement,
} from "./names.ts";
export { revocationId, revocationIds } from "./payload.ts";
export * from "./principal.ts";
export * from "./proof.ts";
export * from "./revocation.ts";
export * from "./revocation-set.ts";
export { parseToken, type ReadingPath, serialiseToken, type TokenInput } from "./serialise.ts";
export * from "./session/index.ts";
export * from "./signed-object.ts";
export type { ShapeRules } from "./structure.ts";
export { formatTime, parseTime } from "./time.ts";
export * from "./types.ts";
export * from "./verified-prefixes.ts";
export * from "./verify.ts";
