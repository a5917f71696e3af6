import { clone, equals } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { ownerRecord } from "./agent.ts";

/**
 * Whether two records differ only in the members that bound the agent. The version may differ too, because changed
 * content needs a new version.
 */
export function isBoundsChange(before: Agent, after: Agent): boolean {
  const [was, is] = [before, after].map((agent) => {
    const unbounded = clone(AgentSchema, ownerRecord(agent));
    delete unbounded.manifest;
    delete unbounded.delegation;
    unbounded.version = "";
    return unbounded;
  }) as [Agent, Agent];
  return equals(AgentSchema, was, is);
}
