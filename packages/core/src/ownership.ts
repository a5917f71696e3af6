/** An object that an organization owns, such as a record or a caller. */
export interface Owned {
  /** The organization's name; empty when no organization is the owner. */
  readonly organization: string;
}

/**
 * Returns the organization that owns a new record: the owner of the record above it or, for a record that stands alone,
 * the caller's organization. So all records of a task (context, artifact, review, messages) have the task's owner, even
 * if an agent of another organization creates them. If the record above has no owner, the new one has none either.
 *
 * @param caller the principal that creates the record; a service creates records for its caller
 * @param above the record that the new one belongs to; undefined for a record that stands alone
 */
export function owningOrganization(caller: Owned, above: Owned | undefined): string {
  return (above ?? caller).organization;
}
