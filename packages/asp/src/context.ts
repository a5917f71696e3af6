import type { ConformanceLevel } from "@depute/contracts/asp/v0/asp_common_pb";
import type { CryptoEngine } from "@depute/dct";
import type { ProofRules } from "./proof.ts";

/** Facts about an agent from outside the session. */
export interface AgentFacts {
  /** The agent's Ed25519 signing key in base64url. */
  readonly key: string;
  /** RFC 7638 thumbprint of the key that signs proofs, if it differs from the signing key. */
  readonly proofThumbprint?: string;
  readonly orgId?: string;
  /** The conformance level that the agent's card declares. If it is absent, the agent supports the whole protocol. */
  readonly conformance?: ConformanceLevel;
  /**
   * The agent's trust score from 0 to 100; absent without a trust service. If absent, scores in messages have no
   * effect.
   */
  readonly trustScore?: number;
}

/** The input of append besides the session and the message. */
export interface AppendContext {
  /** The current time in epoch milliseconds. */
  readonly nowMs: number;
  readonly engine: CryptoEngine;
  /** Finds an agent that joins by an invitation or a delegation. Returns undefined for an unknown agent. */
  readonly agent: (agentId: string) => AgentFacts | undefined;
  /** Whether the session contains a message with this id. */
  readonly hasMessage: (messageId: string) => boolean;
  /** Whether ids must be UUIDv7, as the schema requires. Default: true. */
  readonly strictIds?: boolean;
  /**
   * The rules for the proof in the message. Absent if the sender proved its key in another way. Also absent for
   * transcripts, because a proof is valid only at the time of the call.
   */
  readonly proof?: ProofRules;
}
