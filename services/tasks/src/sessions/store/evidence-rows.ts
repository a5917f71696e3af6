import type { EvidencePlace, Session } from "@depute/asp";
import { FOUND, integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";

const POSITION_ROW = row({ report_ms: integer, session_id: text, delegation_id: text });

/** The positions of the two messages that make up one piece of evidence: the request and the report. */
export interface EvidenceRow extends EvidencePlace {
  readonly askedOrdinal: number;
  readonly reportOrdinal: number;
}

const ROW = row({ session_id: text, delegation_id: text, asked_ordinal: integer, report_ordinal: integer });
type Stored = RowOf<typeof ROW>;

const toRow = ({ session_id, delegation_id, asked_ordinal, report_ordinal }: Stored): EvidenceRow => ({
  sessionId: session_id,
  delegationId: delegation_id,
  askedOrdinal: asked_ordinal,
  reportOrdinal: report_ordinal,
});

/** Stores a delegate's report as evidence, and puts the evidence into the list of each active participant. */
export async function insertEvidence(
  tx: WriteTx,
  { sessionId, parties }: Session,
  { delegationId, askedOrdinal, reportOrdinal }: Omit<EvidenceRow, "sessionId">,
  nowMs: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO session_evidence (session_id, delegation_id, asked_ordinal, report_ordinal)
     VALUES (?, ?, ?, ?) ON CONFLICT (session_id, delegation_id) DO NOTHING`,
    [sessionId, delegationId, askedOrdinal, reportOrdinal],
  );
  for (const { agentId, presence } of parties) {
    if (presence !== "active") continue;
    await tx.run(
      `INSERT INTO session_evidence_parties (agent_id, report_ms, session_id, delegation_id)
       VALUES (?, ?, ?, ?) ON CONFLICT (agent_id, report_ms, session_id, delegation_id) DO NOTHING`,
      [agentId, nowMs, sessionId, delegationId],
    );
  }
}

export async function findEvidence(
  tx: ReadTx,
  { sessionId, delegationId }: EvidencePlace,
): Promise<EvidenceRow | undefined> {
  const row = await tx.get(
    ROW,
    `SELECT session_id, delegation_id, asked_ordinal, report_ordinal FROM session_evidence
     WHERE session_id = ? AND delegation_id = ?`,
    [sessionId, delegationId],
  );
  return row && toRow(row);
}

/** A position in the list of an agent's evidence. */
export interface EvidencePosition extends EvidencePlace {
  readonly reportMs: number;
}

/** Lists the evidence that was reported in sessions while an agent took part in them, newest first. */
export async function listEvidence(
  tx: ReadTx,
  agentId: string,
  after: EvidencePosition | undefined,
  limit: number,
): Promise<EvidencePosition[]> {
  const { reportMs, sessionId, delegationId } = after ?? {
    reportMs: Number.MAX_SAFE_INTEGER,
    sessionId: "",
    delegationId: "",
  };
  const rows = await tx.all(
    POSITION_ROW,
    `SELECT report_ms, session_id, delegation_id FROM session_evidence_parties
     WHERE agent_id = ? AND (report_ms, session_id, delegation_id) < (?, ?, ?)
     ORDER BY report_ms DESC, session_id DESC, delegation_id DESC LIMIT ?`,
    [agentId, reportMs, sessionId, delegationId, limit],
  );
  return rows.map((row) => ({
    reportMs: row.report_ms,
    sessionId: row.session_id,
    delegationId: row.delegation_id,
  }));
}

/** Whether an agent ever took part in a session. */
export async function tookPart(tx: ReadTx, sessionId: string, agentId: string): Promise<boolean> {
  const row = await tx.get(FOUND, "SELECT 1 FROM session_parties WHERE session_id = ? AND agent_id = ?", [
    sessionId,
    agentId,
  ]);
  return row !== undefined;
}

/** Records that evidence was shown in a session. */
export async function insertUse(tx: WriteTx, place: EvidencePlace, usedIn: string): Promise<void> {
  await tx.run(
    `INSERT INTO session_evidence_uses (session_id, delegation_id, used_in) VALUES (?, ?, ?)
     ON CONFLICT (session_id, delegation_id, used_in) DO NOTHING`,
    [place.sessionId, place.delegationId, usedIn],
  );
}

/** Whether evidence was shown in a session in which the principal takes or took part. */
export async function wasShownTo(tx: ReadTx, place: EvidencePlace, principal: string): Promise<boolean> {
  const row = await tx.get(
    FOUND,
    `SELECT 1 FROM session_evidence_uses u
     JOIN session_parties p ON p.session_id = u.used_in
     WHERE u.session_id = ? AND u.delegation_id = ? AND p.principal = ? LIMIT 1`,
    [place.sessionId, place.delegationId, principal],
  );
  return row !== undefined;
}
