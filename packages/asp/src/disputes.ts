import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Dispute, DisputeSchema } from "@depute/contracts/asp/v0/dispute_pb";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { encodeHex, formatTime } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import {
  isPrincipal,
  type Obligation,
  objectsOf,
  partyOf,
  type Session,
  type SessionObject,
} from "./session.ts";

/**
 * The reasons of disputes with their severities from 1 to 5. (ASP concepts "Disputes"; the numbers are Depute's
 * choice.)
 */
export const DISPUTE_SEVERITY = {
  /** The claimed fulfilment differs from the agreed terms. */
  "fulfillment-mismatch": 2,
  /** The obligation was not fulfilled in time. */
  "timeout-breach": 2,
  /** The obligation was not fulfilled, and the escrow was refunded. */
  "non-delivery": 3,
  /** The payer did not answer, although the other side claimed that every obligation is fulfilled. */
  "escrow-violation": 3,
} as const;

export type DisputeReason = keyof typeof DISPUTE_SEVERITY;

/**
 * Derives the disputes that follow from a session itself. No party has to file these disputes, because the signed
 * messages and the times prove them. The disputes do not affect the escrow, which the state machine has settled. The
 * transcript is the evidence for any further claim.
 *
 * @param messageAt returns the message of an ordinal, from which the agreed terms are read
 */
export function disputesOf(
  engine: CryptoEngine,
  session: Session,
  messageAt: (ordinal: number) => Envelope | undefined = () => undefined,
): Dispute[] {
  return objectsOf(session, "commitment").flatMap((commitment) => {
    const { obligations = [], escrow, author } = commitment;
    const terms = termsOf(messageAt(commitment.ordinal));
    const disputed = obligations.flatMap((obligation, index) => {
      const reason = reasonOf(obligation, commitment);
      return reason === undefined ? [] : [{ reason, against: obligation.party, index, obligation }];
    });
    const violation =
      escrow?.state === "forfeited"
        ? [{ reason: "escrow-violation", against: author, index: obligations.length, obligation: undefined }]
        : [];
    return [...disputed, ...violation].map(({ reason, against, index, obligation }) =>
      create(DisputeSchema, {
        disputeId: disputeId(engine, session, commitment, index, reason),
        sessionId: session.sessionId,
        commitmentId: commitment.id,
        filedBy: otherSide(session, against),
        filedAgainst: against,
        reason,
        severity: DISPUTE_SEVERITY[reason as DisputeReason],
        evidence: evidence(commitment, obligation, terms),
      }),
    );
  });
}

function reasonOf({ status }: Obligation, { escrow }: SessionObject): DisputeReason | undefined {
  if (status === "refused") return "fulfillment-mismatch";
  if (status === "overdue") return "timeout-breach";
  // An outstanding obligation whose escrow was not refunded is not a dispute. The obligation may become due after the
  // session, for example a yearly payment.
  return status === "outstanding" && escrow?.state === "refunded" ? "non-delivery" : undefined;
}

function evidence(
  { ordinal, escrow }: SessionObject,
  obligation: Obligation | undefined,
  agreedTerms: JsonObject | undefined,
): JsonObject {
  return {
    agreedInMessage: ordinal,
    ...(agreedTerms === undefined ? {} : { agreedTerms }),
    ...(obligation === undefined ? {} : { obligation: obligation.status }),
    ...(obligation?.dueMs === undefined ? {} : { dueAt: formatTime(obligation.dueMs) }),
    ...(escrow?.state === undefined ? {} : { escrow: escrow.state }),
  };
}

function termsOf(message: Envelope | undefined): JsonObject | undefined {
  const body = message?.content?.body?.kind;
  return body?.case === "commit" ? body.value.terms : undefined;
}

/** Returns the party on the side opposite to an agent. */
function otherSide(session: Session, agentId: string): string {
  const side = partyOf(session, agentId)?.side ?? agentId;
  return session.parties.find((party) => isPrincipal(party) && party.side !== side)?.agentId ?? agentId;
}

/** Derives the dispute's id from the content of the dispute, so that every reader computes the same id. */
function disputeId(
  engine: CryptoEngine,
  { sessionId }: Session,
  { id }: SessionObject,
  index: number,
  reason: string,
): string {
  const idBytes = new TextEncoder().encode(JSON.stringify([sessionId, id, index, reason]));
  return `dsp_${encodeHex(engine.sha256(idBytes)).slice(0, 32)}`;
}
