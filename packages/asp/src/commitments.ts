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

/** What a COMMIT binds whom to. */
export function obligationsOf(
  session: Session,
  { obligations, deadline }: CommitBody,
  nowMs: number,
): Obligation[] {
  const stated = Object.values(obligations.value?.values ?? {});
  const allMs = dueMsOf(deadline, nowMs) ?? Number.POSITIVE_INFINITY;
  for (const { party } of stated) {
    // Nobody is bound who does not hear of it.
    if (partyOf(session, party) === undefined)
      throw new Refused("unknown_party", `${party} is not in the session`);
  }
  return stated.map(({ party, deadline: own }) => {
    const dueMs = Math.min(allMs, dueMsOf(own, nowMs) ?? allMs);
    return { party, status: "outstanding", ...(Number.isFinite(dueMs) ? { dueMs } : {}) };
  });
}

/**
 * When something has to be done.
 *
 * @throws Refused malformed; expired for a time that has passed
 */
export function dueMsOf(deadline: string | undefined, nowMs: number): number | undefined {
  if (deadline === undefined) return undefined;
  const ms = parseOffsetTime(deadline);
  if (ms === undefined) throw new Refused("malformed", "a deadline is no time");
  if (ms <= nowMs) throw new Refused("expired", "a deadline has passed already");
  return ms;
}

/** What should have been done by a time and was not said to be. */
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

/** Both sides are bound: the escrow is held. Without stated obligations, who accepted owes the fulfilment. */
export function acceptCommitment(object: SessionObject, accepter: string): SessionObject {
  const { escrow, obligations = [], dueMs } = object;
  const owed = { party: accepter, status: "outstanding", ...(dueMs === undefined ? {} : { dueMs }) } as const;
  return {
    ...object,
    status: "accepted",
    obligations: obligations.length > 0 ? obligations : [owed],
    ...(escrow === undefined ? {} : { escrow: { ...escrow, state: "held" } }),
  };
}

const sideOf = (session: Session, agentId: string) => partyOf(session, agentId)?.side ?? agentId;

/** A side says that it has done what it owes: an INFORM of type `result` that refers to the commitment. */
export function claim(session: Session, object: SessionObject, side: string): Session {
  const obligations = object.obligations?.map((obligation) =>
    sideOf(session, obligation.party) === side && obligation.status !== "confirmed"
      ? ({ ...obligation, status: "claimed" } as const)
      : obligation,
  );
  return obligations === undefined ? session : withObject(session, { ...object, obligations });
}

/** Whether the other side says that something is done, and `side` has not answered. */
export function awaits(session: Session, { obligations = [] }: SessionObject, side: string): boolean {
  return obligations.some(({ party, status }) => status === "claimed" && sideOf(session, party) !== side);
}

/**
 * A side answers what the other says to have done, or, with `all`, says of its own accord that the other has done what it
 * owes. The escrow, which the commitment's author paid in, is released once all that the other side owes is confirmed.
 */
export function judge(
  session: Session,
  object: SessionObject,
  side: string,
  verdict: "confirmed" | "refused",
  all = false,
): Session {
  const judged = (status: Obligation["status"]) =>
    status === "claimed" || (all && (status === "outstanding" || status === "overdue"));
  const obligations = (object.obligations ?? []).map((obligation) =>
    judged(obligation.status) && sideOf(session, obligation.party) !== side
      ? { ...obligation, status: verdict }
      : obligation,
  );
  const isDone = (of: readonly Obligation[]) => of.every(({ status }) => status === "confirmed");
  const payer = sideOf(session, object.author);
  const owed = obligations.filter(({ party }) => sideOf(session, party) !== payer);
  const releases = object.escrow?.state === "held" && owed.length > 0 && isDone(owed);
  return withObject(session, {
    ...object,
    obligations,
    status: isDone(obligations) ? "fulfilled" : object.status,
    ...(releases && object.escrow !== undefined ? { escrow: { ...object.escrow, state: "released" } } : {}),
  });
}

/**
 * Ends what a session leaves open. Escrow that is still held goes back to who paid it in, unless all that the other side
 * owes was said to be done and who paid did not contest it: then the silence forfeits it.
 */
export function settle(session: Session): Session {
  let settled = session;
  for (const object of objectsOf(session)) {
    const lapses = object.status === "open";
    const isHeld = object.escrow?.state === "held";
    if (!lapses && !isHeld) continue;
    const payer = sideOf(session, object.author);
    const owed = (object.obligations ?? []).filter(({ party }) => sideOf(session, party) !== payer);
    const isEarned =
      owed.length > 0 && owed.every(({ status }) => status === "claimed" || status === "confirmed");
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
