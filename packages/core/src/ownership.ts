/** A record or a caller that may belong to an organization. */
export interface Owned {
  /** The organization's name; empty when no organization is the owner. */
  readonly organization: string;
}

/**
 * Returns the organization that owns a new record: the owner of the record above. For a record that stands
 * alone, the caller's organization is the owner. So all records of a task (context, artifact, review, messages)
 * have the task's owner. The owner does not change if an agent of another organization creates the record. If
 * the record above has no owner, the new record has no owner either.
 *
 * @param caller the principal that creates the record; a service creates records for its caller
 * @param above the record that the new one belongs to; undefined for a record that stands alone
 */
export function owningOrganization(caller: Owned, above: Owned | undefined): string {
  return (above ?? caller).organization;
}
