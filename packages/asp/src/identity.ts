import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { decode } from "@depute/wire";
import { Refused } from "./refusal.ts";
import type { Party } from "./session.ts";

/**
 * Checks the card by which a party introduces itself: it has to be the agent's own, with the key that its messages are
 * signed by, where it names one.
 *
 * @throws Refused malformed, unknown_agent
 */
export function checkCard({ agentId, key }: Party, data: Value | undefined): void {
  const card = decode(AgentCardSchema, data === undefined ? undefined : toJson(ValueSchema, data));
  if (!card.ok) {
    const { path, message } = card.error;
    throw new Refused(
      "malformed",
      `content.body.data has to be the sender's agent card: ${path === "" ? "it" : path} ${message}`,
    );
  }
  const { agentId: named, signingPublicKey } = card.message;
  if (named !== agentId)
    throw new Refused("unknown_agent", "agentId of the card is not the sender's: a party shows its own card");
  if (signingPublicKey !== undefined && signingPublicKey.x !== key) {
    throw new Refused(
      "unknown_agent",
      "signingPublicKey of the card is not the key of the registered card: register the card again, or show that one",
    );
  }
}
