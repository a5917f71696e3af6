/** A record or a caller that may belong to an organization. */
export interface Owned {
  /** The organization's name; empty when no organization is the owner. */
  readonly organization: string;
}

/**
 * Returns the organization that owns a new record: the owner of the record above it, or the caller's organization if
 * there is no record above. So all records of a task (context, artifact, review, messages) have the task's owner. The
 * owner does not change if an agent of another organization creates the record. If the record above has no owner, the
 * new record has no owner either.
 *
 * @param caller the caller whose call creates the record, with the caller's organization
 * @param above the record to which the new record belongs; undefined if there is none
 */
export function owningOrganization(caller: Owned, above: Owned | undefined): string {
  return (above ?? caller).organization;
}
