/** The one format that this package reads and writes (DelegateOS 3.1). */
export const SJT_FORMAT = "delegateos-sjt-v1";

/** parentDelegationId of a root (DelegateOS 3.1). */
export const ROOT_DELEGATION_ID = "del_000000000000";

/** A principal (DelegateOS 2). `id` is the base64url Ed25519 public key: 43 characters. */
export interface Principal {
  id: string;
  name?: string;
  metadata?: Record<string, string>;
}

/** A keypair (DelegateOS 2). `privateKey` is the 32-byte seed. */
export interface Keypair {
  principal: Principal;
  privateKey: Uint8Array;
}

/** A capability (DelegateOS 3.1). `resource` is a glob of segments: `*` for one, `**` for any number (10.2). */
export interface Capability {
  namespace: string;
  action: string;
  resource: string;
}

/**
 * The authority block of a token (DelegateOS 3.1). Amounts of money are in microcents (1 USD = 100,000,000), times are
 * RFC 3339 with Z.
 */
export interface Authority {
  issuer: string;
  delegatee: string;
  capabilities: Capability[];
  contractId: string;
  delegationId: string;
  parentDelegationId: string;
  chainDepth: number;
  maxChainDepth: number;
  maxBudgetMicrocents: number;
  expiresAt: string;
  issuedAt: string;
}

/**
 * An attenuation block of a token (DelegateOS 3.1). An absent member keeps the value of the previous block;
 * `allowedCapabilities: []` allows none. `maxChainDepth` is the number of delegations that are allowed below this
 * block; when absent, one fewer than below the previous block.
 */
export interface Attenuation {
  attenuator: string;
  delegatee: string;
  delegationId: string;
  contractId: string;
  allowedCapabilities?: Capability[];
  maxBudgetMicrocents?: number;
  expiresAt?: string;
  maxChainDepth?: number;
}

/**
 * The signature of one block (DelegateOS 3.1). The signature does not cover `signer` and `covers`. A verifier compares
 * both with the expected values and never trusts them.
 */
export interface TokenSignature {
  signer: string;
  signature: string;
  covers: "authority" | number;
}

/**
 * A token (DelegateOS 3.1). `signatures` has one signature for the authority and one for each attenuation, in order.
 */
export interface SignedJSONToken {
  format: typeof SJT_FORMAT;
  authority: Authority;
  attenuations: Attenuation[];
  signatures: TokenSignature[];
}

/** A serialised token (DelegateOS 3.2). `token` is base64url of the canonical JSON of a SignedJSONToken. */
export interface SerializedDCT {
  token: string;
  format: typeof SJT_FORMAT;
}

/**
 * The revocation of one block (DelegateOS 4.1). In both scopes, verifiers deny every token that contains the block.
 * The scope `chain` also revokes the delegations below the block's.
 */
export interface RevocationEntry {
  revocationId: string;
  revokedBy: string;
  revokedAt: string;
  scope: "block" | "chain";
  signature: string;
}

/** A JSON Schema: draft-07, unless its `$schema` selects 2020-12. */
export type JSONSchema = boolean | Record<string, unknown>;

/** A task contract, as in DelegateOS 5.1. */
export interface TaskContract {
  id: string;
  version: "0.1";
  issuer: string;
  createdAt: string;
  task: TaskSpec;
  verification: VerificationSpec;
  constraints: TaskConstraints;
  signature: string;
}

/** The work that a contract describes, as in DelegateOS 5.1. */
export interface TaskSpec {
  title: string;
  description: string;
  inputs: Record<string, unknown>;
  outputSchema: JSONSchema;
}

/** The constraints of a contract (DelegateOS 5.1). `requiredCapabilities` are of the form `namespace:action`. */
export interface TaskConstraints {
  maxBudgetMicrocents: number;
  deadline: string;
  maxChainDepth: number;
  requiredCapabilities: string[];
}

/** The verification of a contract's outputs (DelegateOS 6.1, with the methods of 6.5 and 6.6). */
export interface VerificationSpec {
  method: "schema_match" | "deterministic_check" | "composite" | "llm_judge" | "human_review";
  schema?: JSONSchema;
  checkName?: string;
  checkParams?: unknown;
  expectedResult?: unknown;
  steps?: VerificationSpec[];
  mode?: "all_pass" | "majority" | "weighted";
  weights?: number[];
  passThreshold?: number;
  judgeModel?: string;
  judgeTemperature?: number;
  judgePrompt?: string;
  evaluations?: number;
  /** Maximum milliseconds to wait for the review of the method human_review. */
  reviewTimeoutMs?: number;
}

/** An attestation, as in DelegateOS 7.1. */
export interface Attestation {
  id: string;
  version: "0.1";
  contractId: string;
  delegationId: string;
  principal: string;
  createdAt: string;
  type: "completion" | "delegation_verification";
  result: AttestationResult;
  childAttestations: string[];
  signature: string;
}

/**
 * The result in an attestation (DelegateOS 7.1). `score` is 0 to 1, `durationMs` milliseconds, `outputHash`
 * BLAKE2b-256.
 */
export interface AttestationResult {
  success: boolean;
  output?: unknown;
  outputHash?: string;
  costMicrocents: number;
  durationMs: number;
  verificationOutcome?: { method: string; passed: boolean; score?: number; details?: string };
}

/** A delegation, as in DelegateOS 8.1. */
export interface Delegation {
  id: string;
  parentId: string;
  from: string;
  to: string;
  contractId: string;
  dct: SerializedDCT;
  depth: number;
  status: "active" | "completed" | "failed" | "revoked";
  createdAt: string;
  completedAt?: string;
  attestationId?: string;
}

/** One block of a verified token, and the grants after it. The authority's block is the first. */
export interface VerifiedBlock {
  revocationId: string;
  signer: string;
  delegatee: string;
  delegationId: string;
  contractId: string;
  /** The effective expiry, in milliseconds since 1970. */
  expiresAt: number;
  maxBudgetMicrocents: number;
}
