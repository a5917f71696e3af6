import { clone } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";

/**
 * Returns an agent's record under another key. The new key replaces the principal, and the card's signing key if that
 * is the replaced key. Removes the signed card, because the replaced key signed it.
 */
export function withPrincipal(agent: Agent, principal: string): Agent {
  const replaced = clone(AgentSchema, agent);
  const key = replaced.card?.signingPublicKey;
  if (key !== undefined && key.crv === "Ed25519" && key.x === agent.principal) {
    key.x = principal;
    // Deletes the `kid`, because it identifies the replaced key.
    delete key.kid;
  }
  replaced.principal = principal;
  replaced.signedCard = new Uint8Array();
  return replaced;
}
