/** A number for each owner of a quota. */
export interface PerOwner {
  readonly principal: number;
  readonly organization: number;
}

/**
 * Returns the owner that has no place for one more open task; undefined if both have one.
 *
 * @param open the open tasks of the delegator, and of the organization that owns the new task
 */
export function fullOwner(open: PerOwner, max: PerOwner): keyof PerOwner | undefined {
  if (open.principal >= max.principal) return "principal";
  return open.organization >= max.organization ? "organization" : undefined;
}
