/** The part of an organization's records of one kind that a purge deletes. */
export type PurgedPart = "all" | "some" | "none";

/** The effect of an organization's purge on one kind of records. The rules of a service cover all its tables. */
export interface PurgeRule {
  /** The name of the records, in the plural; responses to a purge contain this name. */
  readonly kind: string;
  /** The tables that hold the records. Each table of a service is in one rule. */
  readonly tables: readonly string[];
  /**
   * The records that belong to an organization, described for people; empty if no record in the tables belongs to an
   * organization.
   */
  readonly owned: string;
  readonly deletes: PurgedPart;
  /**
   * The reason why records remain, and the time until which they remain. Empty if the purge deletes all, or if no
   * record belongs to an organization.
   */
  readonly remains: string;
}

/** Records of an organization that a purge does not delete. */
export interface RemainingRecords {
  readonly kind: string;
  /** The number of records; undefined if the service does not count them by organization. */
  readonly count: bigint | undefined;
  readonly reason: string;
}

/**
 * Returns the records that a purge does not delete, in the order of the rules.
 *
 * @param counts the numbers of remaining records, by kind; the result omits a kind with the number 0
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
