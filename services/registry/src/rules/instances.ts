import { clone } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";

/** Instances that one agent may have: a change of the base rewrites them all in one transaction. */
export const MAX_INSTANCES = 1_000;

/**
 * What holds for an instance: what it says itself, and its base's where it says nothing. (CAP "Agent Definition",
 * instances)
 *
 * What may be done, and by whom it is seen, is always the base's: an instance is allowed whatever its base is, and not
 * more. Its id, its principal and its lease are its own.
 */
export function inherit(instance: Agent, base: Agent): Agent {
  const effective = clone(AgentSchema, instance);
  for (const name of ["displayName", "description", "version", "organization"] as const) {
    if (effective[name] === "") effective[name] = base[name];
  }
  for (const name of ["tags", "protocols"] as const) {
    if (effective[name].length === 0) effective[name] = [...base[name]];
  }
  if (effective.card === undefined && base.card !== undefined) effective.card = base.card;
  if (effective.nekte === undefined && base.nekte !== undefined) effective.nekte = base.nekte;
  if (effective.delegation === undefined && base.delegation !== undefined)
    effective.delegation = base.delegation;
  if (base.manifest === undefined) delete effective.manifest;
  else effective.manifest = base.manifest;
  effective.visibility = base.visibility;
  effective.visibleTo = [...base.visibleTo];
  return effective;
}
