import { evidenceOf } from "@depute/asp";
import { type Evidence, EvidenceSchema } from "@depute/contracts/asp/v0/evidence_pb";
import { decodePageToken, encodePageToken, pageSize } from "@depute/core";
import { AnswerRoom, bytesOf, type Identity, mayActFor } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { SessionEngine } from "../engine/engine.ts";
import { delegationNotFound } from "../rules/refusals.ts";
import { type EvidencePosition, findEvidence, listEvidence, wasShownTo } from "../store/evidence-rows.ts";
import { readMessages, readParties, readSession } from "../store/session-rows.ts";

type Place = Pick<EvidencePosition, "sessionId" | "delegationId">;

/**
 * Returns evidence. The caller must take part, or have taken part, in the session of the evidence, or in a session
 * in which the evidence was shown.
 *
 * @throws DeputeError SESSION_DELEGATION_NOT_FOUND
 */
export async function readEvidence(
  { store }: SessionEngine,
  identity: Identity,
  place: Place,
): Promise<Evidence> {
  return store.read(async (tx) => {
    const { principals } = await readParties(tx, place.sessionId);
    const isOwn = [...principals.values()].some((principal) => mayActFor(identity, principal));
    if (!isOwn && !(await wasShownTo(tx, place, identity.principal))) throw delegationNotFound(place);
    const evidence = await load(tx, place);
    if (evidence === undefined) throw delegationNotFound(place);
    return evidence;
  });
}

/** Returns a page of the evidence that was reported while the agent took part in the session, newest first. */
export async function evidencePage(
  { store }: SessionEngine,
  agentId: string,
  size: number,
  pageToken: string,
) {
  const [reportMs, sessionId, delegationId] = decodePageToken(pageToken, { agentId }) ?? [];
  const after =
    typeof reportMs === "number" && typeof sessionId === "string" && typeof delegationId === "string"
      ? { reportMs, sessionId, delegationId }
      : undefined;
  const limit = pageSize(size);
  return store.read(async (tx) => {
    const evidenceRows = await listEvidence(tx, agentId, after, limit + 1);
    const evidence: Evidence[] = [];
    const room = new AnswerRoom();
    let last: EvidencePosition | undefined;
    for (const place of evidenceRows.slice(0, limit)) {
      const one = await load(tx, place);
      if (one !== undefined && !room.takes(bytesOf(EvidenceSchema, one))) break;
      if (one !== undefined) evidence.push(one);
      last = place;
    }
    const more = last !== undefined && last !== evidenceRows.at(-1);
    const position = more && last ? [last.reportMs, last.sessionId, last.delegationId] : undefined;
    return { evidence, nextPageToken: position === undefined ? "" : encodePageToken(position, { agentId }) };
  });
}

async function load(tx: ReadTx, place: Place): Promise<Evidence | undefined> {
  const { sessionId, delegationId } = place;
  const row = await findEvidence(tx, place);
  const session = row && (await readSession(tx, sessionId));
  if (row === undefined || session === undefined) return undefined;
  const [askedMessage] = await readMessages(tx, sessionId, row.askedOrdinal - 1, 1);
  const [report] = await readMessages(tx, sessionId, row.reportOrdinal - 1, 1);
  if (askedMessage === undefined || report === undefined) return undefined;
  return evidenceOf(session, delegationId, askedMessage.envelope, report);
}
