import type { HandlerContext } from "@connectrpc/connect";
import type { PurgeOrganizationRequest } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { hasRole } from "@depute/service";
import type { Eraser } from "../engine/eraser.ts";
import type { TasksContext } from "./context.ts";

/** Maximum number of records of each kind that a call without `max_count` deletes. */
const DEFAULT_COUNT = 100;

/**
 * Implements TaskService.PurgeOrganization.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, and the errors of Authority.identify
 */
export async function purgeOrganization(
  { authority, log }: TasksContext,
  eraser: Eraser,
  request: PurgeOrganizationRequest,
  context: HandlerContext,
) {
  const identity = await authority.identify(context);
  if (!identity.local && !hasRole(identity, "operator")) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only an operator may purge an organization");
  }
  const { organization, reason, maxCount } = request;
  const { deleted, more } = await eraser.erase(organization, reason, maxCount || DEFAULT_COUNT);
  log.info({ operator: identity.principal, deleted, more }, "records of an organization were purged");
  return { deletedCount: BigInt(deleted), more };
}
