import { clone } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";

/** Maximum number of instances of one agent. A change of the base rewrites all instances in one transaction. */
export const MAX_INSTANCES = 1_000;

/**
 * Returns the effective record of an instance: the members of the instance, completed by members of the base. (CAP
 * "Agent Definition", instances) The manifest and the visibility always come from the base. So an instance never has
 * more permissions than its base. Id, principal and lease are always the instance's.
 */
export function inherit(instance: Agent, base: Agent): Agent {
  const record = clone(AgentSchema, instance);
  for (const name of ["displayName", "description", "version", "organization"] as const) {
    if (record[name] === "") record[name] = base[name];
  }
  for (const name of ["tags", "protocols"] as const) {
    if (record[name].length === 0) record[name] = [...base[name]];
  }
  if (record.card === undefined && base.card !== undefined) record.card = base.card;
  // An agent has at most one endpoint of its own. So an instance with an endpoint inherits no endpoint.
  const hasOwnAddress = record.a2aCard !== undefined || (record.nekte?.endpoint ?? "") !== "";
  if (record.nekte === undefined && !hasOwnAddress && base.nekte !== undefined) record.nekte = base.nekte;
  if (!hasOwnAddress && base.a2aCard !== undefined) record.a2aCard = base.a2aCard;
  if (record.delegation === undefined && base.delegation !== undefined) record.delegation = base.delegation;
  if (base.manifest === undefined) delete record.manifest;
  else record.manifest = base.manifest;
  record.visibility = base.visibility;
  record.visibleTo = [...base.visibleTo];
  return record;
}
