import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { decode } from "@depute/wire";
import { Refused } from "./refusal.ts";
import type { Party } from "./session.ts";

/**
 * Checks the card in a party's introduction. The card must have the party's agent id. If the card states a signing
 * key, this key must be the party's.
 *
 * @throws Refused malformed, unknown_agent
 */
export function checkCard({ agentId, key }: Party, data: Value | undefined): void {
  const card = decode(AgentCardSchema, data === undefined ? undefined : toJson(ValueSchema, data));
  if (!card.ok) {
    const { path, message } = card.error;
    throw new Refused(
      "malformed",
      `content.body.data must be the sender's agent card: ${path === "" ? "it" : path} ${message}`,
    );
  }
  const { agentId: cardAgentId, signingPublicKey } = card.message;
  if (cardAgentId !== agentId)
    throw new Refused("unknown_agent", "agentId of the card must be the sender's: send your own card");
  if (signingPublicKey !== undefined && signingPublicKey.x !== key) {
    throw new Refused(
      "unknown_agent",
      "signingPublicKey of the card is not the key of the registered card: register the card again, or send the registered card",
    );
  }
}
