import { RejectionCode } from "@depute/contracts/asp/v0/asp_common_pb";

/** The families of ASP's errors. (ASP guides "Error handling") */
export type RefusalFamily = "timeout" | "rejection" | "protocol" | "integrity" | "trust";

interface RefusalKind {
  readonly family: RefusalFamily;
  /** The protocol's code for the refusal, as REJECT and INFORM use it. (ASP specification "Error codes") */
  readonly rejection: RejectionCode;
  /** Whether the sender may succeed later with a new message for the same purpose. */
  readonly retryable: boolean;
}

function kind(family: RefusalFamily, rejection: RejectionCode, retryable = false): RefusalKind {
  return { family, rejection, retryable };
}

const { OTHER, UNAUTHORIZED, POLICY_VIOLATION, TIMEOUT, DUPLICATE, CAPACITY_UNAVAILABLE } = RejectionCode;

/** The reasons for refusing a message. Each code has its family, ASP's code, and whether a retry may succeed. */
export const REFUSALS = {
  /** The message breaks a rule of form that protobuf validation cannot express: UUIDv7 ids, dates, size. */
  malformed: kind("protocol", OTHER),
  /** The version is not asp/0.1, and versions are not negotiated. */
  unsupported_version: kind("protocol", RejectionCode.SCHEMA_UNSUPPORTED),
  /**
   * The media type of an invitation's content is not the `messageFormat` of the invitation, or a message does not
   * have the session's format.
   */
  unsupported_format: kind("protocol", RejectionCode.SCHEMA_UNSUPPORTED),
  /** The message is for another session. */
  wrong_session: kind("protocol", OTHER),
  /** The agent or its key is unknown, or the card in an introduction is not the sender's. */
  unknown_agent: kind("trust", UNAUTHORIZED),
  /** The sender is not a participant of the session, has left or closed it, or has not accepted the invitation. */
  not_a_participant: kind("rejection", UNAUTHORIZED),
  /** integrity.hash is not the hash of the message. */
  wrong_hash: kind("integrity", OTHER),
  /** integrity.signature is not a signature by the sender. */
  bad_signature: kind("integrity", UNAUTHORIZED),
  /** The proof of possession is invalid: its form, its key, its signature, or the call that it names. (RFC 9449 4.3) */
  bad_proof: kind("integrity", UNAUTHORIZED),
  /** The time in the proof differs too much from the server's time. */
  stale_proof: kind("timeout", TIMEOUT, true),
  /** A proof with this id was already used with the same key. */
  proof_replayed: kind("integrity", DUPLICATE),
  /** The session already contains a message with this id. */
  duplicate_message: kind("protocol", DUPLICATE),
  /** previousHash is not the hash of the latest message, because another message came first. */
  head_moved: kind("integrity", DUPLICATE, true),
  /** sequenceNumber is not the sender's next number. */
  wrong_sequence: kind("protocol", DUPLICATE, true),
  /** The timestamp differs too much from the server's time. */
  clock_skew: kind("timeout", TIMEOUT, true),
  /** The organization differs from the one with which the sender joined. */
  organization_mismatch: kind("trust", UNAUTHORIZED),
  /** sender.trustScore differs from the score that was stored when the sender joined. */
  trust_mismatch: kind("trust", UNAUTHORIZED),
  /** The sender's score is below the minimum that the answered message requires. */
  insufficient_trust: kind("trust", RejectionCode.INSUFFICIENT_TRUST_SCORE),
  /** The session has ended. */
  session_ended: kind("protocol", OTHER),
  /** The session's state does not allow this message. */
  wrong_state: kind("protocol", OTHER),
  /**
   * One of the two parties has sent CLOSE, so most messages are no longer allowed, for example one that opens an
   * object.
   */
  closing: kind("protocol", OTHER),
  /** The sender is not the party that may send this message. */
  wrong_party: kind("rejection", UNAUTHORIZED),
  /** The sender's delegation does not grant the authority for this message. */
  authority_exceeded: kind("rejection", POLICY_VIOLATION),
  /** An agent's conformance level does not include this message. */
  not_conformant: kind("rejection", RejectionCode.SCHEMA_UNSUPPORTED),
  /** The answered message does not allow this performative. */
  performative_not_allowed: kind("rejection", POLICY_VIOLATION),
  /** referenceId does not name an object of the session. */
  unknown_reference: kind("protocol", OTHER),
  /** A reference names evidence that no delegate has reported in any of the sender's sessions. */
  unknown_evidence: kind("protocol", OTHER),
  /** The object that referenceId names is closed. */
  reference_closed: kind("protocol", OTHER),
  /** The object that referenceId names has lapsed, or a time that the message states has passed. */
  expired: kind("timeout", TIMEOUT, true),
  /** The id of the new object is already used. */
  id_taken: kind("protocol", DUPLICATE),
  /** The recipient, or a party that the body names, is not a participant or is on the sender's side. */
  unknown_party: kind("protocol", OTHER),
  /** Another agent of the same principal already takes part; a principal can be only one party. */
  same_principal: kind("trust", UNAUTHORIZED),
  /** The agent is already a participant. */
  already_participant: kind("protocol", DUPLICATE),
  /**
   * A limit of limits.ts on the whole session is reached. Waiting does not help, because the counted value never
   * falls.
   */
  limit_exceeded: kind("rejection", POLICY_VIOLATION),
  /** A temporary limit is reached: too many open objects, or too many messages in a short time. */
  at_capacity: kind("rejection", CAPACITY_UNAVAILABLE, true),
} as const satisfies Record<string, RefusalKind>;

export type RefusalCode = keyof typeof REFUSALS;

/** The codes for a limit that is reached. */
export type LimitCode = "limit_exceeded" | "at_capacity";

/** The name and the value of the limit that was reached. */
export interface ReachedLimit {
  readonly limit: string;
  readonly max: number;
}

/** The reason why a message was not appended. The session is unchanged. */
export type Refusal =
  | (Reason & { readonly code: LimitCode; readonly reached: ReachedLimit })
  | (Reason & { readonly code: Exclude<RefusalCode, LimitCode> });

interface Reason extends RefusalKind {
  /** A text for people. Of the message's content, it repeats only ids. */
  readonly detail: string;
  /** The invalid member of a proof, for example `htu`; absent for every other refusal. */
  readonly claim?: string;
}

/** An exception that never leaves this package, because the exported functions return results instead. */
export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(code: LimitCode, detail: string, reached: ReachedLimit);
  constructor(code: Exclude<RefusalCode, LimitCode>, detail: string, claim?: string);
  constructor(code: RefusalCode, detail: string, fact?: ReachedLimit | string) {
    super(detail);
    this.name = "Refused";
    const namedFact = typeof fact === "string" ? { claim: fact } : { reached: fact };
    this.refusal = { code, detail, ...REFUSALS[code], ...(fact !== undefined && namedFact) } as Refusal;
  }
}

/**
 * For each rejection code, whether a later attempt may succeed. For a code without an entry, the rejecting
 * message decides. (ASP specification "Error codes")
 */
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
 * Whether the sender may send a rejected message again. `RETRYABLE` decides for its codes. For any other code, `stated`
 * decides: the field `retryable` of the rejecting message. The default is false.
 */
export function isRetryable(code: RejectionCode, stated?: boolean): boolean {
  return RETRYABLE.get(code) ?? stated ?? false;
}
