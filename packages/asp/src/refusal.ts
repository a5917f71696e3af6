import { RejectionCode } from "@depute/contracts/asp/v0/common_pb";

/** The families of errors. (ASP guides "Error handling") */
export type RefusalFamily = "timeout" | "rejection" | "protocol" | "integrity" | "trust";

interface RefusalKind {
  readonly family: RefusalFamily;
  /** The protocol's own code for it, as it stands in REJECT and INFORM. (ASP specification "Error codes") */
  readonly rejection: RejectionCode;
  /** Whether the same intent may succeed later, in another message. */
  readonly retryable: boolean;
}

function kind(family: RefusalFamily, rejection: RejectionCode, retryable = false): RefusalKind {
  return { family, rejection, retryable };
}

const { OTHER, UNAUTHORIZED, POLICY_VIOLATION, TIMEOUT, DUPLICATE, CAPACITY_UNAVAILABLE } = RejectionCode;

/** Why a message is refused: every code with its family. */
export const REFUSALS = {
  /** The message is not well formed where the contract cannot say so: an id that is no UUIDv7, a time that is no date, its size. */
  malformed: kind("protocol", OTHER),
  /** Not asp/0.1: there is no negotiation of versions. */
  unsupported_version: kind("protocol", RejectionCode.SCHEMA_UNSUPPORTED),
  /** An invitation asks for a format of messages that is not spoken, or a message is not in the session's. */
  unsupported_format: kind("protocol", RejectionCode.SCHEMA_UNSUPPORTED),
  /** The message names another session. */
  wrong_session: kind("protocol", OTHER),
  /** Nobody knows the agent, or its key. */
  unknown_agent: kind("trust", UNAUTHORIZED),
  /** The sender takes no part in the session, or no more. */
  not_a_participant: kind("rejection", UNAUTHORIZED),
  /** integrity.hash is not the hash of the message. */
  wrong_hash: kind("integrity", OTHER),
  /** integrity.signature is not the sender's. */
  bad_signature: kind("integrity", UNAUTHORIZED),
  /** The proof of possession is not right: its form, its key, its signature, or the call that it names. (RFC 9449 4.3) */
  bad_proof: kind("integrity", UNAUTHORIZED),
  /** The proof's time is too far from now. */
  stale_proof: kind("timeout", TIMEOUT, true),
  /** A proof of that id of that key was taken before. */
  proof_replayed: kind("integrity", DUPLICATE),
  /** A message of that id is in the session already. */
  duplicate_message: kind("protocol", DUPLICATE),
  /** previousHash is not the hash of the newest message. */
  head_moved: kind("integrity", DUPLICATE, true),
  /** sequenceNumber is not the sender's next. */
  wrong_sequence: kind("protocol", DUPLICATE, true),
  /** The timestamp is too far from now. */
  clock_skew: kind("timeout", TIMEOUT, true),
  /** The organization is not the one that the sender came with. */
  organization_mismatch: kind("trust", UNAUTHORIZED),
  /** sender.trustScore is not the score that was noted when the sender came. */
  trust_mismatch: kind("trust", UNAUTHORIZED),
  /** The score is below the one that the answered message asks for. */
  insufficient_trust: kind("trust", RejectionCode.INSUFFICIENT_TRUST_SCORE),
  /** The session has ended. */
  session_ended: kind("protocol", OTHER),
  /** The session's state does not allow this message. */
  wrong_state: kind("protocol", OTHER),
  /** One party has closed: nothing new is opened. */
  closing: kind("protocol", OTHER),
  /** This party may not send this message. */
  wrong_party: kind("rejection", UNAUTHORIZED),
  /** The sender's delegation does not go so far. */
  authority_exceeded: kind("rejection", POLICY_VIOLATION),
  /** The level of conformance that an agent's card declares does not have this. */
  not_conformant: kind("rejection", RejectionCode.SCHEMA_UNSUPPORTED),
  /** The answered message does not allow this performative. */
  performative_not_allowed: kind("rejection", POLICY_VIOLATION),
  /** referenceId names nothing in the session. */
  unknown_reference: kind("protocol", OTHER),
  /** A reference names evidence that no delegate gave in a session of the sender's. */
  unknown_evidence: kind("protocol", OTHER),
  /** What referenceId names is not open any more. */
  reference_closed: kind("protocol", OTHER),
  /** What referenceId names has lapsed. */
  expired: kind("timeout", TIMEOUT, true),
  /** The id of what is opened is used already. */
  id_taken: kind("protocol", DUPLICATE),
  /** The recipient, or a party that the body names, takes no part in the session, or is on the sender's own side. */
  unknown_party: kind("protocol", OTHER),
  /** Another agent of the same principal takes part: one principal is one party. */
  same_principal: kind("trust", UNAUTHORIZED),
  /** The agent takes part already. */
  already_participant: kind("protocol", DUPLICATE),
  /** One of the limits of limits.ts that stays reached, however long the sender waits. */
  limit_exceeded: kind("rejection", POLICY_VIOLATION),
  /** A limit that passes: too many objects are open at once, or the sender writes too fast. */
  at_capacity: kind("rejection", CAPACITY_UNAVAILABLE, true),
} as const satisfies Record<string, RefusalKind>;

export type RefusalCode = keyof typeof REFUSALS;

/** The codes of what reached a limit. */
export type LimitCode = "limit_exceeded" | "at_capacity";

/** The limit that was reached: its name, and its value. */
export interface ReachedLimit {
  readonly limit: string;
  readonly max: number;
}

/** Why a message was not appended. The session stays as it was. */
export type Refusal =
  | (Reason & { readonly code: LimitCode; readonly reached: ReachedLimit })
  | (Reason & { readonly code: Exclude<RefusalCode, LimitCode> });

interface Reason extends RefusalKind {
  /** For people; it repeats nothing but ids. */
  readonly detail: string;
  /** The member of a proof of possession that is at fault, e.g. `htu`; absent for every other refusal. */
  readonly claim?: string;
}

/** Thrown within this package only: what the package gives out are results. */
export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(code: LimitCode, detail: string, reached: ReachedLimit);
  constructor(code: Exclude<RefusalCode, LimitCode>, detail: string, claim?: string);
  constructor(code: RefusalCode, detail: string, fact?: ReachedLimit | string) {
    super(detail);
    this.name = "Refused";
    const named = typeof fact === "string" ? { claim: fact } : { reached: fact };
    this.refusal = { code, detail, ...REFUSALS[code], ...(fact !== undefined && named) } as Refusal;
  }
}

/** Whether what a REJECT refuses may succeed later; undefined means that it varies. (ASP specification "Error codes") */
const RETRYABLE: ReadonlyMap<RejectionCode, boolean> = new Map([
  [RejectionCode.INSUFFICIENT_TRUST_SCORE, false],
  [RejectionCode.UNAUTHORIZED, false],
  [RejectionCode.SCHEMA_UNSUPPORTED, false],
  [RejectionCode.BUDGET_EXCEEDED, true],
  [RejectionCode.CAPACITY_UNAVAILABLE, true],
  [RejectionCode.POLICY_VIOLATION, false],
  [RejectionCode.TIMEOUT, true],
  [RejectionCode.DUPLICATE, false],
  [RejectionCode.ESCALATION_REQUIRED, true],
]);

/**
 * Whether a rejection may be tried again. The table decides; what the message states counts only for the code
 * `unspecified`, where the text says that it varies.
 */
export function isRetryable(code: RejectionCode, stated?: boolean): boolean {
  return RETRYABLE.get(code) ?? stated ?? false;
}
