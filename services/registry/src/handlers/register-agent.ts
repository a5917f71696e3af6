import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type RegisterAgentRequest,
  RegisterAgentRequestSchema,
  type RegisterAgentResponse,
  RegisterAgentResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { invalid } from "@depute/core";
import { announce, checkMayActFor, identify, type RegistryContext } from "../context.ts";
import { repeatable } from "../idempotency.ts";
import { present, register } from "../rules/agent.ts";
import { baseOf, checkOwnership } from "../rules/registration.ts";
import { findAgent, putAgent } from "../store/agents.ts";

const SCHEMAS = { request: RegisterAgentRequestSchema, answer: RegisterAgentResponseSchema };

/** AgentService.RegisterAgent. */
export async function registerAgent(
  registry: RegistryContext,
  request: RegisterAgentRequest,
  context: HandlerContext,
): Promise<RegisterAgentResponse> {
  const identity = await identify(registry, context);
  const { agent } = request;
  if (agent === undefined) throw invalid("agent", "is required");
  checkMayActFor(identity, agent.principal, "agent.principal");
  const call = repeatable(SCHEMAS, identity.principal, request.requestId, request);
  return registry.store.write(async (tx) => {
    const answered = await call.before(tx);
    if (answered !== undefined) return answered;
    const known = await findAgent(tx, agent.id);
    const baseId = baseOf(agent.id);
    const base = baseId === undefined ? undefined : await findAgent(tx, baseId);
    checkOwnership(agent.id, agent.principal, known?.record, base?.record);
    const now = registry.clock.now();
    const stored = register(agent, known, now);
    await putAgent(tx, stored);
    const answer = create(RegisterAgentResponseSchema, { agent: present(stored, now) });
    await call.keep(tx, answer, now);
    announce(registry, tx, agent.id);
    return answer;
  });
}
