import type { ConformanceLevel } from "@depute/contracts/asp/v0/common_pb";
import type { CryptoEngine } from "@depute/dct";
import type { ProofRules } from "./proof.ts";

/** What is known of an agent outside the session. */
export interface AgentFacts {
  /** The key of its signatures: Ed25519, base64url. */
  readonly key: string;
  /** RFC 7638 thumbprint of the key of its proofs, where that is another one. */
  readonly proofThumbprint?: string;
  readonly orgId?: string;
  /** How much of the protocol its card says that it speaks; absent: all of it. */
  readonly conformance?: ConformanceLevel;
  /** 0 to 100; absent where nobody keeps one: then what messages state is neither checked nor used. */
  readonly trustScore?: number;
}

/** What append has to know beside the session and the message. */
export interface AppendContext {
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly engine: CryptoEngine;
  /** Asked for agents that come: of an invitation, and of a delegation. undefined: nobody knows it. */
  readonly agent: (agentId: string) => AgentFacts | undefined;
  /** Whether the session has a message of that id. */
  readonly hasMessage: (messageId: string) => boolean;
  /** Whether ids have to be UUIDv7, as the schema says; true unless told otherwise. */
  readonly strictIds?: boolean;
  /**
   * What the proof in the message is judged by. Absent where the sender proved its key otherwise, and in a transcript: a
   * proof is about the moment in which a message comes.
   */
  readonly proof?: ProofRules;
}
