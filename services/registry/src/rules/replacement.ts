import { clone } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";

/**
 * What an agent's owner said of it, with another key: as its principal, and as its card's signing key. A card that the key
 * before has signed is not this one's word.
 */
export function withPrincipal(agent: Agent, principal: string): Agent {
  const replaced = clone(AgentSchema, agent);
  const key = replaced.card?.signingPublicKey;
  if (key !== undefined && key.crv === "Ed25519" && key.x === agent.principal) {
    key.x = principal;
    // The id was that of the key before.
    delete key.kid;
  }
  replaced.principal = principal;
  replaced.signedCard = new Uint8Array();
  return replaced;
}
