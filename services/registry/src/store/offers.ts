import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Offer, OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  bytes,
  integer,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import type { Viewer } from "../rules/agent.ts";
import type { ReadOffer } from "../rules/offer.ts";
import { visibilityCondition } from "./visibility.ts";

const VERSION_ROW = row({ version: text });
const ID_ROW = row({ id: text });

/** A stored version of an offer. Times are epoch milliseconds. */
export interface StoredOffer {
  readonly offer: Offer;
  /** Position of this version among the offer's versions, starting at 1. */
  readonly sequence: number;
  readonly sellerId: string;
  readonly digest: string;
  readonly isCurrent: boolean;
  readonly validFrom: number;
  readonly validUntil: number;
  readonly publishTime: number;
  /** The time of the withdrawal in epoch milliseconds; 0 if this version is not withdrawn. */
  readonly withdrawTime: number;
  readonly withdrawMessage: string;
}

const OFFER_ROW = row({
  sequence: integer,
  seller_id: text,
  digest: text,
  is_current: integer,
  valid_from: integer,
  valid_until: integer,
  publish_time: integer,
  withdraw_time: integer,
  withdraw_message: text,
  record: bytes,
});
type OfferRow = RowOf<typeof OFFER_ROW>;

const COLUMNS = `f.sequence, f.seller_id, f.digest, f.is_current, f.valid_from, f.valid_until, f.publish_time,
  f.withdraw_time, f.withdraw_message, f.record`;

/**
 * Returns the SQL condition for the offers that a viewer may see: the viewer may see the seller. An offer that names
 * buyers is visible only to its seller and those buyers.
 */
function offerVisibility(viewer: Viewer): { sql: string; params: SqlValue[] } {
  if (viewer === "all") return { sql: "TRUE", params: [] };
  const seller = visibilityCondition(viewer);
  const { principal } = viewer;
  return {
    sql: `${seller.sql} AND (f.is_restricted = 0 OR a.principal = ? OR EXISTS (
      SELECT 1 FROM offer_buyers b JOIN agents g ON g.id = b.buyer_id
      WHERE b.offer_id = f.offer_id AND b.sequence = f.sequence AND g.principal = ?))`,
    params: [...seller.params, principal, principal],
  };
}

/** Returns a visible version of an offer: the version that `version` names or, if empty, the current version. */
export async function findOffer(
  tx: ReadTx,
  offerId: string,
  version: string,
  viewer: Viewer,
): Promise<StoredOffer | undefined> {
  const sight = offerVisibility(viewer);
  const versionCondition = version === "" ? "f.is_current = 1" : "f.version = ?";
  const row = await tx.get(
    OFFER_ROW,
    `SELECT ${COLUMNS} FROM offers f JOIN agents a ON a.id = f.seller_id
     WHERE f.offer_id = ? AND ${versionCondition} AND ${sight.sql}`,
    [offerId, ...(version === "" ? [] : [version]), ...sight.params],
  );
  return row && toStored(row);
}

/**
 * Returns visible versions of an offer with sequences below `before`, latest first. An offer has a limited number of
 * versions, which bounds the rows read.
 */
export async function listOfferVersions(
  tx: ReadTx,
  offerId: string,
  { before, limit, viewer }: { before: number; limit: number; viewer: Viewer },
): Promise<StoredOffer[]> {
  const { sql, params } = offerVersionsQuery(offerId, { before, viewer });
  const rows = await tx.all(OFFER_ROW, `${sql} LIMIT ?`, [...params, limit]);
  return rows.map(toStored);
}

/** Returns the SQL statement of {@link listOfferVersions} without its limit. */
export function offerVersionsQuery(
  offerId: string,
  { before, viewer }: { before: number; viewer: Viewer },
): { sql: string; params: SqlValue[] } {
  const sight = offerVisibility(viewer);
  const sql = `SELECT ${COLUMNS} FROM offers f CROSS JOIN agents a ON a.id = f.seller_id
    WHERE f.offer_id = ? AND f.sequence < ? AND ${sight.sql} ORDER BY f.sequence DESC`;
  return { sql, params: [offerId, before, ...sight.params] };
}

/** Returns the latest version of an offer, visible or not. */
export async function latestOffer(tx: ReadTx, offerId: string): Promise<StoredOffer | undefined> {
  const row = await tx.get(
    OFFER_ROW,
    `SELECT ${COLUMNS} FROM offers f WHERE f.offer_id = ? ORDER BY f.sequence DESC LIMIT 1`,
    [offerId],
  );
  return row && toStored(row);
}

/** Reads the names of all versions of an offer. */
export async function offerVersions(tx: ReadTx, offerId: string): Promise<Set<string>> {
  const rows = await tx.all(VERSION_ROW, "SELECT version FROM offers WHERE offer_id = ?", [offerId]);
  return new Set(rows.map(({ version }) => version));
}

/** Inserts a version and makes it the current one. */
export async function addOffer(
  tx: WriteTx,
  read: ReadOffer,
  { sequence, digest, now }: { sequence: number; digest: string; now: number },
): Promise<void> {
  const { offer, buyers } = read;
  const { offerId } = offer;
  await tx.run("UPDATE offers SET is_current = 0 WHERE offer_id = ? AND is_current = 1", [offerId]);
  await tx.run(
    `INSERT INTO offers (offer_id, sequence, version, seller_id, organization, digest, is_current, is_restricted,
       valid_from, valid_until, publish_time, withdraw_time, withdraw_message, record)
     VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, 0, '', ?)`,
    [
      offerId,
      sequence,
      offer.offerVersion ?? "",
      offer.sellerAgent?.agentId ?? "",
      offer.sellerAgent?.organizationId ?? "",
      digest,
      buyers === undefined ? 0 : 1,
      read.validFrom,
      read.validUntil,
      now,
      toBinary(OfferSchema, offer),
    ],
  );
  for (const buyer of buyers ?? []) {
    await tx.run("INSERT INTO offer_buyers (offer_id, sequence, buyer_id) VALUES (?, ?, ?)", [
      offerId,
      sequence,
      buyer,
    ]);
  }
  for (const word of read.capabilities) {
    await tx.run("INSERT INTO offer_words (word, offer_id, sequence) VALUES (?, ?, ?)", [
      word,
      offerId,
      sequence,
    ]);
  }
}

/**
 * Withdraws one version or, if `version` is empty, all versions. The latest remaining version becomes current.
 *
 * @returns the number of withdrawn versions
 */
export async function withdrawOffers(
  tx: WriteTx,
  offerId: string,
  version: string,
  { now, message }: { now: number; message: string },
): Promise<number> {
  const versionCondition = version === "" ? "" : " AND version = ?";
  const { changes } = await tx.run(
    `UPDATE offers SET withdraw_time = ?, withdraw_message = ?
     WHERE offer_id = ? AND withdraw_time = 0${versionCondition}`,
    [now, message, offerId, ...(version === "" ? [] : [version])],
  );
  if (changes === 0) return 0;
  // If no version remains, the latest stays current, so that lookups report the withdrawal.
  await tx.run("UPDATE offers SET is_current = 0 WHERE offer_id = ? AND is_current = 1", [offerId]);
  await tx.run(
    `UPDATE offers SET is_current = 1 WHERE offer_id = ? AND sequence =
       (SELECT sequence FROM offers WHERE offer_id = ? ORDER BY withdraw_time = 0 DESC, sequence DESC LIMIT 1)`,
    [offerId, offerId],
  );
  return changes;
}

/** The filter of a list of offers. An empty or absent member matches all. */
export interface OfferFilter {
  readonly sellerId: string;
  readonly organization: string;
  /** The lower-case word that searches compare with an offer's capabilities. */
  readonly word: string;
  readonly buyerId: string;
  /** The time in epoch milliseconds at which the offers must be valid; undefined for any time. */
  readonly validAt: number | undefined;
}

/** Maximum rows that one SQL statement of a list reads. */
const WALK = 1_000;
/**
 * Maximum number of SQL statements for one list. After this number the list stops early, and the next page continues.
 */
const MAX_WALKS = 2;

/**
 * The offers of a list. `stoppedAt` is the last offer id that the list read if the list stopped early; otherwise
 * undefined.
 */
export interface OfferPage {
  readonly offers: readonly StoredOffer[];
  readonly stoppedAt: string | undefined;
}

/**
 * Returns at most `limit` current, visible offers that are not withdrawn, in the order of their ids, starting after
 * `after`. Reads a bounded number of rows.
 */
export async function listOffers(
  tx: ReadTx,
  filter: OfferFilter,
  { after: begin, limit, viewer }: { after: string; limit: number; viewer: Viewer },
): Promise<OfferPage> {
  const offers: StoredOffer[] = [];
  let after = begin;
  for (let walks = 0; walks < MAX_WALKS; walks++) {
    const until = await walkEnd(tx, filter, after);
    const { sql, params } = offersQuery(filter, { after, until, viewer });
    const rows = await tx.all(OFFER_ROW, `${sql} LIMIT ?`, [...params, limit - offers.length]);
    offers.push(...rows.map(toStored));
    if (until === undefined || offers.length >= limit) return { offers, stoppedAt: undefined };
    after = until;
  }
  return { offers, stoppedAt: after };
}

/** Returns the offer id of the `WALK`th row that follows the id `after`; undefined if fewer rows follow. */
async function walkEnd(tx: ReadTx, filter: OfferFilter, after: string): Promise<string | undefined> {
  const { table, condition, params } = walkBy(filter);
  const row = await tx.get(
    ID_ROW,
    `SELECT offer_id AS id FROM ${table} WHERE ${condition} AND offer_id > ? ORDER BY offer_id LIMIT 1 OFFSET ?`,
    [...params, after, WALK - 1],
  );
  return row?.id;
}

/** Returns the table and the SQL condition by which a list reads its rows in the order of an index. */
function walkBy({ word, sellerId, organization }: OfferFilter) {
  if (word !== "") return { table: "offer_words", condition: "word = ?", params: [word] };
  const current = "is_current = 1";
  if (sellerId !== "")
    return { table: "offers", condition: `${current} AND seller_id = ?`, params: [sellerId] };
  if (organization !== "")
    return { table: "offers", condition: `${current} AND organization = ?`, params: [organization] };
  return { table: "offers", condition: current, params: [] };
}

/** Returns the SQL statement of a list of offers without its limit. */
function offersQuery(
  filter: OfferFilter,
  { after, until, viewer }: { after: string; until: string | undefined; viewer: Viewer },
) {
  const conditions = ["f.is_current = 1", "f.withdraw_time = 0"];
  const params: SqlValue[] = [];
  const where = (sql: string, ...values: SqlValue[]) => {
    conditions.push(sql);
    params.push(...values);
  };
  if (filter.sellerId !== "") where("f.seller_id = ?", filter.sellerId);
  if (filter.organization !== "") where("f.organization = ?", filter.organization);
  if (filter.validAt !== undefined)
    where("f.valid_from <= ? AND f.valid_until > ?", filter.validAt, filter.validAt);
  if (filter.buyerId !== "") {
    where(
      `(f.is_restricted = 0 OR EXISTS (SELECT 1 FROM offer_buyers b
         WHERE b.offer_id = f.offer_id AND b.sequence = f.sequence AND b.buyer_id = ?))`,
      filter.buyerId,
    );
  }
  const byWord = filter.word !== "";
  if (byWord) where("w.word = ?", filter.word);
  const place = byWord ? "w.offer_id" : "f.offer_id";
  where(`${place} > ?`, after);
  if (until !== undefined) where(`${place} <= ?`, until);
  const sight = offerVisibility(viewer);
  const tables = byWord
    ? "offer_words w CROSS JOIN offers f ON f.offer_id = w.offer_id AND f.sequence = w.sequence"
    : "offers f";
  const sql = `SELECT ${COLUMNS} FROM ${tables} CROSS JOIN agents a ON a.id = f.seller_id
    WHERE ${conditions.join(" AND ")} AND ${sight.sql} ORDER BY ${place}`;
  return { sql, params: [...params, ...sight.params] };
}

function toStored(row: OfferRow): StoredOffer {
  return {
    offer: fromBinary(OfferSchema, row.record),
    sequence: row.sequence,
    sellerId: row.seller_id,
    digest: row.digest,
    isCurrent: row.is_current === 1,
    validFrom: row.valid_from,
    validUntil: row.valid_until,
    publishTime: row.publish_time,
    withdrawTime: row.withdraw_time,
    withdrawMessage: row.withdraw_message,
  };
}
