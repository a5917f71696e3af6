/** One number for each owner of a quota: the principal and the organization. */
export interface PerOwner {
  readonly principal: number;
  readonly organization: number;
}

/**
 * Returns the first owner whose quota is full; undefined if both owners may have one more open task.
 *
 * @param open the numbers of open tasks of the delegator, and of the organization that owns the new task
 * @param max the maximum numbers of open tasks
 */
export function fullOwner(open: PerOwner, max: PerOwner): keyof PerOwner | undefined {
  if (open.principal >= max.principal) return "principal";
  return open.organization >= max.organization ? "organization" : undefined;
}
