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

/** Why a commitment is in dispute, and how grave that is, 1 to 5. (ASP concepts "Disputes"; the numbers are Depute's choice.) */
export const DISPUTE_SEVERITY = {
  /** What was said to be done is not what was agreed. */
  "fulfillment-mismatch": 2,
  /** It was not done in time. */
  "timeout-breach": 2,
  /** Nothing was done, and the escrow went back. */
  "non-delivery": 3,
  /** Who paid in fell silent though all that the other side owed was said to be done. */
  "escrow-violation": 3,
} as const;

export type DisputeReason = keyof typeof DISPUTE_SEVERITY;

/**
 * What is in dispute, as it follows from the session itself: nobody has to file what the signed messages and the time show.
 * It is settled as the machine settles the escrow; who wants more shows the transcript.
 *
 * @param messageAt the message of an ordinal, for the agreed terms
 */
export function disputesOf(
  engine: CryptoEngine,
  session: Session,
  messageAt: (ordinal: number) => Envelope | undefined = () => undefined,
): Dispute[] {
  return objectsOf(session, "commitment").flatMap((commitment) => {
    const { obligations = [], escrow, author } = commitment;
    const terms = termsOf(messageAt(commitment.ordinal));
    const found = obligations.flatMap((obligation, index) => {
      const reason = reasonOf(obligation, commitment);
      return reason === undefined ? [] : [{ reason, against: obligation.party, index, obligation }];
    });
    const violation =
      escrow?.state === "forfeited"
        ? [{ reason: "escrow-violation", against: author, index: obligations.length, obligation: undefined }]
        : [];
    return [...found, ...violation].map(({ reason, against, index, obligation }) =>
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
  // Without escrow an obligation may well outlast the session: seats are paid for by the year.
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

/** The party on the other side of an agent. */
function otherSide(session: Session, agentId: string): string {
  const side = partyOf(session, agentId)?.side ?? agentId;
  return session.parties.find((party) => isPrincipal(party) && party.side !== side)?.agentId ?? agentId;
}

/** The same dispute has the same id, whoever looks. */
function disputeId(
  engine: CryptoEngine,
  { sessionId }: Session,
  { id }: SessionObject,
  index: number,
  reason: string,
): string {
  const named = new TextEncoder().encode(JSON.stringify([sessionId, id, index, reason]));
  return `dsp_${encodeHex(engine.sha256(named)).slice(0, 32)}`;
}
