/** The part of an organization's records of one kind that a purge deletes. */
export type PurgedPart = "all" | "some" | "none";

/** What a purge of an organization does with one kind of records. A service has one rule for each of its tables. */
export interface PurgeRule {
  /** The records in the plural; answers of a purge use the word. */
  readonly kind: string;
  /** The tables that hold the records. Each table of a service is in one rule. */
  readonly tables: readonly string[];
  /** The records that belong to an organization; empty if the tables hold no record of an organization. */
  readonly owned: string;
  readonly deletes: PurgedPart;
  /** Why records remain, and until when; empty if all are deleted, or if none is an organization's. */
  readonly remains: string;
}

/** Records of an organization that a purge keeps. */
export interface RemainingRecords {
  readonly kind: string;
  /** The number of records; undefined if the service does not count them by organization. */
  readonly count: bigint | undefined;
  readonly reason: string;
}

/**
 * Returns the records that a purge keeps, in the order of the rules.
 *
 * @param counts the numbers of remaining records, by kind; a kind with the number 0 is left out
 */
export function remainingRecords(
  rules: readonly PurgeRule[],
  counts: ReadonlyMap<string, number>,
): RemainingRecords[] {
  return rules
    .filter(({ kind, owned, deletes }) => owned !== "" && deletes !== "all" && counts.get(kind) !== 0)
    .map(({ kind, remains }) => {
      const count = counts.get(kind);
      return { kind, count: count === undefined ? undefined : BigInt(count), reason: remains };
    });
}
