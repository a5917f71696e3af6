import { toBinary } from "@bufbuild/protobuf";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentCardSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { type A2aInterface, a2aInterfaceOf, invalid, MAX_A2A_INTERFACES } from "@depute/core";

const FIELD = "agent.a2a_card";

/** Maximum size of the A2A card that an agent publishes, in bytes of its protobuf encoding. */
const MAX_CARD_BYTES = 16_384;

/**
 * Checks the A2A card that an agent publishes at its own URL. Returns the interface at which the platform calls the
 * agent. (A2A 8.3)
 *
 * @returns undefined if the agent publishes no card
 * @throws DeputeError INVALID_REQUEST
 */
export function requireA2aInterface({
  a2aCard,
  nekte,
}: Pick<Agent, "a2aCard" | "nekte">): A2aInterface | undefined {
  if (a2aCard === undefined) return undefined;
  if (toBinary(AgentCardSchema, a2aCard).length > MAX_CARD_BYTES) {
    throw invalid(FIELD, `is longer than ${MAX_CARD_BYTES} bytes`);
  }
  if (nekte !== undefined && nekte.endpoint !== "") {
    throw invalid(FIELD, "cannot be combined with agent.nekte.endpoint; state only one of the two");
  }
  const endpoint = a2aInterfaceOf(a2aCard.supportedInterfaces);
  if (endpoint !== undefined) return endpoint;
  throw invalid(
    `${FIELD}.supported_interfaces`,
    `must have an address of version 1.x over JSONRPC, HTTP+JSON or GRPC among its first ${MAX_A2A_INTERFACES} entries`,
  );
}
