import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type TrustEntry, TrustEntrySchema } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { bytes, FOUND, integer, type ReadTx, row, type SqlValue, text, type WriteTx } from "@depute/store";
import { type BayesianState, NO_OUTCOMES } from "../rules/bayesian.ts";
import {
  IDLE_GRACE_MS,
  IDLE_HALF_LIFE_MS,
  scoreParts,
  type TrustState,
  trustScore,
  unknownTrust,
} from "../rules/trust.ts";
import type { Source } from "../rules/witness.ts";

const STATE_ROW = row({ state: text });
const SOURCE_TIME_GAINS_ROW = row({ source: text, time: integer, gains: text });
const RECORD_DIGEST_ROW = row({ record: bytes, digest: text });
const NEXT_ROW = row({ next: integer });
const N_ROW = row({ n: integer });
const RECORD_ROW = row({ record: bytes });

/** Totals of an agent's evidence. */
export interface StoredTrust {
  readonly trust: TrustState;
  readonly bayesian: BayesianState;
}

/** Maximum number of stored pieces of evidence about one agent. The totals still include deleted evidence. */
const MAX_EVIDENCE = 10_000;
/** Maximum number of pieces of evidence that each insert deletes. */
const DELETED_PER_INSERT = 10;

/**
 * Returns the totals of an agent's evidence; undefined if it has no evidence.
 *
 * @param counterpart empty for the totals over all counterparts
 */
export async function findTrust(
  tx: ReadTx,
  subject: string,
  counterpart: string,
): Promise<StoredTrust | undefined> {
  const row = await tx.get(STATE_ROW, "SELECT state FROM trust WHERE subject = ? AND counterpart = ?", [
    subject,
    counterpart,
  ]);
  return row && ({ bayesian: NO_OUTCOMES, ...JSON.parse(row.state) } as StoredTrust);
}

export async function putTrust(
  tx: WriteTx,
  subject: string,
  counterpart: string,
  stored: StoredTrust,
): Promise<void> {
  const { lasting, fading } = scoreParts(stored.trust);
  await tx.run(
    `INSERT INTO trust (subject, counterpart, lasting, fading, time, state) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (subject, counterpart) DO UPDATE SET lasting = excluded.lasting, fading = excluded.fading,
       time = excluded.time, state = excluded.state`,
    [subject, counterpart, lasting, fading, stored.trust.time, JSON.stringify(stored)],
  );
}

/**
 * The fields of a piece of evidence that have separate columns, so that the store can find or compare evidence by them.
 */
export interface EvidenceKey {
  readonly caller: string;
  readonly evidenceId: string;
  readonly digest: string;
  readonly kind: string;
  readonly reference: string;
  /** Whether the evidence is about work with a stake or a verified result. */
  readonly substantial: boolean;
}

/** Returns an agent's gains from the named sources, by name. Sources without gains are absent. */
export async function findSources(
  tx: ReadTx,
  subject: string,
  names: readonly string[],
): Promise<Map<string, Source>> {
  const rows = await tx.all(
    SOURCE_TIME_GAINS_ROW,
    `SELECT source, time, gains FROM trust_sources WHERE subject = ? AND source IN (${names.map(() => "?").join(", ")})`,
    [subject, ...names],
  );
  return new Map(rows.map(({ source, time, gains }) => [source, { time, gains: JSON.parse(gains) }]));
}

export async function putSource(tx: WriteTx, subject: string, name: string, source: Source): Promise<void> {
  await tx.run(
    `INSERT INTO trust_sources (subject, source, time, gains) VALUES (?, ?, ?, ?)
     ON CONFLICT (subject, source) DO UPDATE SET time = excluded.time, gains = excluded.gains`,
    [subject, name, source.time, JSON.stringify(source.gains)],
  );
}

/** Finds evidence by caller and id, with the digest of the request that recorded it. */
export async function findEvidence(
  tx: ReadTx,
  caller: string,
  evidenceId: string,
): Promise<{ entry: TrustEntry; digest: string } | undefined> {
  const row = await tx.get(
    RECORD_DIGEST_ROW,
    "SELECT record, digest FROM trust_evidence WHERE caller = ? AND evidence_id = ?",
    [caller, evidenceId],
  );
  return row && { entry: fromBinary(TrustEntrySchema, row.record), digest: row.digest };
}

/** Returns the sequence number for the next piece of evidence. */
export async function nextSequence(tx: ReadTx): Promise<number> {
  const row = await tx.get(NEXT_ROW, "SELECT COALESCE(MAX(sequence), 0) + 1 AS next FROM trust_evidence");
  return row?.next ?? 1;
}

/** Inserts evidence, and deletes the agent's oldest evidence beyond the limit. */
export async function addEvidence(
  tx: WriteTx,
  subject: string,
  counterpart: string,
  key: EvidenceKey,
  entry: TrustEntry,
): Promise<void> {
  await tx.run(
    `INSERT INTO trust_evidence
       (sequence, caller, evidence_id, digest, subject, counterpart, kind, reference, substantial, record)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      Number(entry.sequence),
      key.caller,
      key.evidenceId,
      key.digest,
      subject,
      counterpart,
      key.kind,
      key.reference,
      key.substantial ? 1 : 0,
      toBinary(TrustEntrySchema, entry),
    ],
  );
  await tx.run(
    `DELETE FROM trust_evidence WHERE sequence IN (SELECT sequence FROM trust_evidence
       WHERE subject = ? ORDER BY sequence DESC LIMIT ? OFFSET ?)`,
    [subject, DELETED_PER_INSERT, MAX_EVIDENCE],
  );
}

/**
 * Counts evidence of the given kinds about an agent, up to `limit`.
 *
 * @param reference the reference of an outcome; undefined for any
 * @param counterpart undefined for all counterparts
 */
export async function countEvidence(
  tx: ReadTx,
  subject: string,
  counterpart: string | undefined,
  kinds: readonly string[],
  reference: string | undefined,
  limit: number,
): Promise<number> {
  const conditions = ["subject = ?", `kind IN (${kinds.map(() => "?").join(", ")})`];
  const params: (string | number)[] = [subject, ...kinds];
  for (const [column, value] of [
    ["counterpart", counterpart],
    ["reference", reference],
  ] as const) {
    if (value === undefined) continue;
    conditions.push(`${column} = ?`);
    params.push(value);
  }
  const row = await tx.get(
    N_ROW,
    `SELECT COUNT(*) AS n FROM
       (SELECT 1 FROM trust_evidence WHERE ${conditions.join(" AND ")} LIMIT ?) AS counted`,
    [...params, limit],
  );
  return row?.n ?? 0;
}

/** Whether two agents have evidence with this reference about work with a stake or a verified result. */
export async function hasSubstantialOutcome(
  tx: ReadTx,
  subject: string,
  counterpart: string,
  reference: string,
): Promise<boolean> {
  const row = await tx.get(
    FOUND,
    `SELECT 1 FROM trust_evidence WHERE subject = ? AND counterpart = ? AND kind IN ('attestation', 'session')
       AND reference = ? AND substantial = 1 LIMIT 1`,
    [subject, counterpart, reference],
  );
  return row !== undefined;
}

/**
 * Returns evidence about an agent with sequences below `before`, latest first.
 *
 * @param counterpart empty for all counterparts
 * @param givenBy the principal of the counterpart that gave the evidence; undefined for any counterpart
 */
export async function listEvidence(
  tx: ReadTx,
  subject: string,
  counterpart: string,
  givenBy: string | undefined,
  { before, limit }: { before: number; limit: number },
): Promise<TrustEntry[]> {
  const conditions = ["subject = ?", "sequence < ?"];
  const params: (string | number)[] = [subject, before];
  if (counterpart !== "") {
    conditions.push("counterpart = ?");
    params.push(counterpart);
  }
  if (givenBy !== undefined) {
    conditions.push("EXISTS (SELECT 1 FROM agents a WHERE a.id = e.counterpart AND a.principal = ?)");
    params.push(givenBy);
  }
  const rows = await tx.all(
    RECORD_ROW,
    `SELECT record FROM trust_evidence e WHERE ${conditions.join(" AND ")} ORDER BY sequence DESC LIMIT ?`,
    [...params, limit],
  );
  return rows.map(({ record }) => fromBinary(TrustEntrySchema, record));
}

/** The score of an agent with a proven key and without evidence. */
const KEY_SCORE = trustScore(unknownTrust(true, 0));

/**
 * Returns the SQL condition on `agents a` for a score of at least `least` at `now`. The condition must compute the same
 * score as `decay` in the rules.
 */
export function trustCondition(least: number, now: number): { sql: string; params: SqlValue[] } {
  const idle = `(? - t.time - ${IDLE_GRACE_MS}) * 1.0 / ${IDLE_HALF_LIFE_MS}`;
  const mine = "t.subject = COALESCE(a.base_id, a.id) AND t.counterpart = ''";
  const remainingShare = `CASE WHEN ${idle} > 0 THEN POWER(0.5, ${idle}) ELSE 1 END`;
  const scored = `EXISTS (SELECT 1 FROM trust t WHERE ${mine} AND t.lasting + t.fading * ${remainingShare} >= ?)`;
  if (least > KEY_SCORE) return { sql: scored, params: [now, now, least] };
  return {
    sql: `(${scored} OR (a.principal <> '' AND NOT EXISTS (SELECT 1 FROM trust t WHERE ${mine})))`,
    params: [now, now, least],
  };
}
