import { disputesOf, objectsOf, type Session } from "@depute/asp";
import type { Dispute } from "@depute/contracts/asp/v0/dispute_pb";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { nativeEngine } from "@depute/dct/native";
import type { Store } from "@depute/store";
import { readMessages } from "./rows.ts";

/** The disputes of a session, with the terms that were agreed. */
export async function readDisputes(store: Store, session: Session): Promise<Dispute[]> {
  // Without the messages first: most sessions have none, and what is agreed may be long.
  const disputed = new Set(disputesOf(nativeEngine, session).map(({ commitmentId }) => commitmentId));
  if (disputed.size === 0) return [];
  return store.read(async (tx) => {
    const messages = new Map<number, Envelope>();
    for (const { id, ordinal } of objectsOf(session, "commitment")) {
      if (!disputed.has(id)) continue;
      const [row] = await readMessages(tx, session.sessionId, ordinal - 1, 1);
      if (row !== undefined) messages.set(ordinal, row.envelope);
    }
    return disputesOf(nativeEngine, session, (ordinal) => messages.get(ordinal));
  });
}
