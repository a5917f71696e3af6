import { clone, equals } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { ownersPart } from "./agent.ts";

/**
 * Whether a record differs from the one before in nothing but what bounds the agent, and the word for its version, which a
 * new content needs.
 */
export function isBoundsChange(before: Agent, after: Agent): boolean {
  const [was, is] = [before, after].map((agent) => {
    const rest = clone(AgentSchema, ownersPart(agent));
    delete rest.manifest;
    delete rest.delegation;
    rest.version = "";
    return rest;
  }) as [Agent, Agent];
  return equals(AgentSchema, was, is);
}
