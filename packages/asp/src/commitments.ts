import type { CommitBody } from "@depute/contracts/asp/v0/action_pb";
import { parseOffsetTime } from "@depute/core";
import { Refused } from "./refusal.ts";
import {
  type EscrowAccount,
  type Obligation,
  objectsOf,
  partyOf,
  type Session,
  type SessionObject,
  withObject,
} from "./session.ts";

/** Returns the obligations that a COMMIT creates. Throws Refused unknown_party, malformed, expired. */
export function obligationsOf(
  session: Session,
  { obligations, deadline }: CommitBody,
  nowMs: number,
): Obligation[] {
  const stated = Object.values(obligations.value?.values ?? {});
  const allMs = dueMsOf(deadline, nowMs) ?? Number.POSITIVE_INFINITY;
  for (const { party } of stated) {
    // Only participants can have obligations, because other agents do not receive the messages.
    if (partyOf(session, party) === undefined)
      throw new Refused("unknown_party", `${party} is not a participant of the session`);
  }
  return stated.map(({ party, deadline: own }) => {
    const dueMs = Math.min(allMs, dueMsOf(own, nowMs) ?? allMs);
    return { party, status: "outstanding", ...(Number.isFinite(dueMs) ? { dueMs } : {}) };
  });
}

/**
 * Returns the due time of an obligation in epoch milliseconds; undefined without a deadline.
 *
 * @throws Refused malformed; expired for a time that has passed
 */
export function dueMsOf(deadline: string | undefined, nowMs: number): number | undefined {
  if (deadline === undefined) return undefined;
  const ms = parseOffsetTime(deadline);
  if (ms === undefined) throw new Refused("malformed", "a deadline is not a time");
  if (ms <= nowMs) throw new Refused("expired", "a deadline has already passed: state a later time");
  return ms;
}

/** Marks each outstanding obligation as overdue if its due time is at or before `atMs`. */
export function overdue(object: SessionObject, atMs: number): SessionObject {
  const obligations = object.obligations?.map((obligation) =>
    obligation.status === "outstanding" && (obligation.dueMs ?? Number.POSITIVE_INFINITY) <= atMs
      ? ({ ...obligation, status: "overdue" } as const)
      : obligation,
  );
  return obligations === undefined ? object : { ...object, obligations };
}

export function escrowOf({ escrow }: CommitBody): EscrowAccount | undefined {
  if (escrow === undefined) return undefined;
  const { amount, currency, releaseCondition } = escrow;
  return { amount, currency, releaseCondition };
}

/**
 * Makes a commitment binding for both sides and holds the escrow. If the commitment states no obligations, the
 * accepting party owes the fulfilment.
 */
export function acceptCommitment(object: SessionObject, accepter: string): SessionObject {
  const { escrow, obligations = [], dueMs } = object;
  const defaultObligation = {
    party: accepter,
    status: "outstanding",
    ...(dueMs === undefined ? {} : { dueMs }),
  } as const;
  return {
    ...object,
    status: "accepted",
    obligations: obligations.length > 0 ? obligations : [defaultObligation],
    ...(escrow === undefined ? {} : { escrow: { ...escrow, state: "held" } }),
  };
}

const sideOf = (session: Session, agentId: string) => partyOf(session, agentId)?.side ?? agentId;

/**
 * Records the claim of `side` that its obligations are fulfilled. The claim is an INFORM of type `result` that
 * refers to the commitment.
 */
export function claim(session: Session, object: SessionObject, side: string): Session {
  const obligations = object.obligations?.map((obligation) =>
    sideOf(session, obligation.party) === side && obligation.status !== "confirmed"
      ? ({ ...obligation, status: "claimed" } as const)
      : obligation,
  );
  return obligations === undefined ? session : withObject(session, { ...object, obligations });
}

/**
 * Whether the side opposite to `side` claims that an obligation is fulfilled, and `side` has not answered the claim.
 */
export function awaitsAnswer(session: Session, { obligations = [] }: SessionObject, side: string): boolean {
  return obligations.some(({ party, status }) => status === "claimed" && sideOf(session, party) !== side);
}

/**
 * Confirms or contests the other side's claims in the name of `side`. With `all`, the verdict also applies to
 * obligations that the other side has not claimed. When all of the payee's obligations are confirmed, the payee gets
 * the escrow. The payer is the commitment's author.
 */
export function answerClaims(
  session: Session,
  object: SessionObject,
  side: string,
  verdict: "confirmed" | "refused",
  all = false,
): Session {
  const receivesVerdict = (status: Obligation["status"]) =>
    status === "claimed" || (all && (status === "outstanding" || status === "overdue"));
  const obligations = (object.obligations ?? []).map((obligation) =>
    receivesVerdict(obligation.status) && sideOf(session, obligation.party) !== side
      ? { ...obligation, status: verdict }
      : obligation,
  );
  const isDone = (isEveryDone: readonly Obligation[]) =>
    isEveryDone.every(({ status }) => status === "confirmed");
  const payer = sideOf(session, object.author);
  const payeeObligations = obligations.filter(({ party }) => sideOf(session, party) !== payer);
  const releases = object.escrow?.state === "held" && payeeObligations.length > 0 && isDone(payeeObligations);
  return withObject(session, {
    ...object,
    obligations,
    status: isDone(obligations) ? "fulfilled" : object.status,
    ...(releases && object.escrow !== undefined ? { escrow: { ...object.escrow, state: "released" } } : {}),
  });
}

/**
 * Settles the open commitments at the end of a session. The payer gets held escrow back, with one exception. The
 * payer forfeits the escrow if the payee claimed all its obligations and the payer contested none.
 */
export function settle(session: Session): Session {
  let settled = session;
  for (const object of objectsOf(session)) {
    const lapses = object.status === "open";
    const isHeld = object.escrow?.state === "held";
    if (!lapses && !isHeld) continue;
    const payer = sideOf(session, object.author);
    const payeeObligations = (object.obligations ?? []).filter(
      ({ party }) => sideOf(session, party) !== payer,
    );
    const isEarned =
      payeeObligations.length > 0 &&
      payeeObligations.every(({ status }) => status === "claimed" || status === "confirmed");
    settled = withObject(settled, {
      ...object,
      ...(lapses ? { status: "lapsed" as const } : {}),
      ...(isHeld && object.escrow !== undefined
        ? { escrow: { ...object.escrow, state: isEarned ? "forfeited" : "refunded" } }
        : {}),
    });
  }
  return settled;
}
