import { create, type JsonValue } from "@bufbuild/protobuf";
import { AgentCardSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { encode } from "@depute/wire";

/** The version of NEKTE, as its library says it on the wire. */
export const NEKTE_VERSION = "0.2.0";

/** The name under which the platform as a whole speaks NEKTE. */
export const PLATFORM_AGENT = "depute";

const INSTRUCTIONS =
  "Discover at level 0 first, then ask for level 2 of the one capability that you need. Keep its hash and send it " +
  "with every invocation. State a budget in tokens: results step down from full to compact to minimal. " +
  "nekte.introspect explains the rest; name a topic (budget, discovery, errors, tasks) to read less.";

/** What the card of an agent, or of the platform, is made of. */
export interface CardParts {
  readonly agent: string;
  /** The URL that calls are posted to. */
  readonly endpoint: string;
  readonly caps: readonly string[];
  readonly auth: "bearer" | "none";
}

/** The agent card, as it stands at `.well-known/nekte.json` (NEKTE library). */
export function agentCard({ agent, endpoint, caps, auth }: CardParts): JsonValue {
  const card = {
    nekte: NEKTE_VERSION,
    agent,
    endpoint,
    caps: [...caps],
    auth,
    budgetSupport: true,
    instructions: INSTRUCTIONS,
  };
  return encode(AgentCardSchema, create(AgentCardSchema, card));
}
