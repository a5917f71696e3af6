import { equals } from "@bufbuild/protobuf";
import {
  disputesOf,
  MAX_DISPUTE_BYTES,
  MAX_FILED_DISPUTES,
  objectsOf,
  REFUSALS,
  type Refusal,
  refusalOfDispute,
  type Session,
} from "@depute/asp";
import { type Dispute, DisputeSchema } from "@depute/contracts/asp/v0/dispute_pb";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { canonicalBytes } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import type { ReadTx, Store } from "@depute/store";
import { encode } from "@depute/wire";
import { refused } from "../rules/refusals.ts";
import { filedDisputes, insertDispute } from "../store/dispute-rows.ts";
import { readMessages } from "../store/session-rows.ts";

/**
 * Returns the disputes of a session. Disputes that follow from the session's messages come before filed disputes.
 * A dispute that follows from messages has the terms of the disputed agreement in its evidence.
 */
export async function readDisputes(store: Store, session: Session): Promise<Dispute[]> {
  return store.read(async (tx) => [
    ...(await derivedDisputes(tx, session)),
    ...(await filedDisputes(tx, session.sessionId, MAX_FILED_DISPUTES)),
  ]);
}

async function derivedDisputes(tx: ReadTx, session: Session): Promise<Dispute[]> {
  // Derives the disputes from the session's state first. Most sessions have none, and a read of all messages is costly.
  const disputed = new Set(disputesOf(nativeEngine, session).map(({ commitmentId }) => commitmentId));
  if (disputed.size === 0) return [];
  const messages = new Map<number, Envelope>();
  for (const { id, ordinal } of objectsOf(session, "commitment")) {
    if (!disputed.has(id)) continue;
    const [row] = await readMessages(tx, session.sessionId, ordinal - 1, 1);
    if (row !== undefined) messages.set(ordinal, row.envelope);
  }
  return disputesOf(nativeEngine, session, (ordinal) => messages.get(ordinal));
}

/**
 * Files a dispute. A repeated call returns the stored dispute.
 *
 * @param session the session as the caller sees it
 * @throws DeputeError for a refused dispute, with the reason from `REASONS`
 */
export async function fileDispute(store: Store, session: Session, dispute: Dispute): Promise<Dispute> {
  const refuse = (refusal: Refusal | undefined) => {
    if (refusal !== undefined) throw refused(refusal, session);
  };
  refuse(refusalOfDispute(session, dispute));
  const size = canonicalBytes(encode(DisputeSchema, dispute)).length;
  if (size > MAX_DISPUTE_BYTES) {
    refuse(because("malformed", `the dispute has ${size} bytes and must have at most ${MAX_DISPUTE_BYTES}`));
  }
  return store.write(async (tx) => {
    const filed = await filedDisputes(tx, session.sessionId, MAX_FILED_DISPUTES);
    const filedDispute = filed.find(({ disputeId }) => disputeId === dispute.disputeId);
    if (filedDispute !== undefined && equals(DisputeSchema, filedDispute, dispute)) return filedDispute;
    const derived = disputesOf(nativeEngine, session);
    if (filedDispute !== undefined || derived.some(({ disputeId }) => disputeId === dispute.disputeId)) {
      refuse(because("id_taken", "another dispute of the session has this disputeId: choose another id"));
    }
    if (filed.length >= MAX_FILED_DISPUTES) {
      refuse({
        ...{
          code: "limit_exceeded",
          detail: `a session may have at most ${MAX_FILED_DISPUTES} filed disputes`,
        },
        ...REFUSALS.limit_exceeded,
        reached: { limit: "session.disputes", max: MAX_FILED_DISPUTES },
      });
    }
    await insertDispute(tx, filed.length + 1, dispute);
    return dispute;
  });
}

function because(code: "malformed" | "id_taken", detail: string): Refusal {
  return { code, detail, ...REFUSALS[code] };
}
