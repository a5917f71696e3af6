/** The members of a recorded delegation that determine the consequences of a revocation. */
export interface RevocableDelegation {
  readonly id: string;
  readonly parentId: string;
  readonly revocationId: string;
  readonly rootRevocationId: string;
}

/**
 * Returns the delegations that a revocation ends: the revoked delegation, and all delegations below it in the same
 * tree.
 *
 * @param all the known delegations; the platform may have more
 */
export function consequencesOf<Record extends RevocableDelegation>(
  revoked: Record,
  all: readonly Record[],
): Record[] {
  const below = new Map<string, Record[]>();
  for (const each of all) {
    if (each.rootRevocationId !== revoked.rootRevocationId) continue;
    below.set(each.parentId, [...(below.get(each.parentId) ?? []), each]);
  }
  const covered = new Map([[revoked.revocationId, revoked]]);
  for (const one of covered.values()) {
    for (const each of below.get(one.id) ?? []) covered.set(each.revocationId, each);
  }
  return [...covered.values()];
}
