import type { JsonValue, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { DeputeClients } from "./clients.ts";

/** A capability of an agent. */
export interface CapabilityDraft {
  readonly id: string;
  readonly description?: string;
  /** One word for the kind of work. Default: `other`. */
  readonly category?: string;
  /** JSON Schema of the input. Default: any JSON. */
  readonly input?: JsonValue;
  /** JSON Schema of the output. Default: any JSON. */
  readonly output?: JsonValue;
}

/** An agent to register: members of depute.registry.v1.Agent, and the agent's capabilities. */
export interface AgentDraft
  extends Omit<MessageInitShape<typeof AgentSchema>, "$typeName" | "leaseDuration"> {
  readonly id: string;
  readonly capabilities?: readonly CapabilityDraft[];
  /** Milliseconds without a heartbeat after which the agent counts as lost. Default: no limit. */
  readonly leaseMs?: number;
}

/** Registers an agent, and publishes its capabilities. Registering the same agent again changes nothing. */
export async function registerAgent(clients: DeputeClients, draft: AgentDraft): Promise<void> {
  const { capabilities, leaseMs, ...agent } = draft;
  const lease = leaseMs === undefined ? {} : { leaseDuration: durationFromMs(leaseMs) };
  await clients.agents.registerAgent({
    agent: { ...agent, ...lease } as MessageInitShape<typeof AgentSchema>,
  });
  if (capabilities === undefined) return;
  await clients.agents.publishCapabilities({
    agentId: draft.id,
    capabilities: capabilities.map(({ id, description, category = "other", input = {}, output = {} }) => ({
      ...{ id, cat: category, inputSchema: utf8(input), outputSchema: utf8(output) },
      ...(description !== undefined && { desc: description }),
    })),
  });
}

function utf8(schema: JsonValue): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(schema));
}
