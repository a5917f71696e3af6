import { clone } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";

/**
 * Returns the owner's record under another key. The new key replaces the principal and the card's signing key. A card
 * that the previous key signed is removed.
 */
export function withPrincipal(agent: Agent, principal: string): Agent {
  const replaced = clone(AgentSchema, agent);
  const key = replaced.card?.signingPublicKey;
  if (key !== undefined && key.crv === "Ed25519" && key.x === agent.principal) {
    key.x = principal;
    // The `kid` is deleted, because it identifies the previous key.
    delete key.kid;
  }
  replaced.principal = principal;
  replaced.signedCard = new Uint8Array();
  return replaced;
}
