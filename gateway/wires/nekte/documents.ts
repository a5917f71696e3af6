import { create, type JsonValue } from "@bufbuild/protobuf";
import { AgentCardSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { encode } from "@depute/wire";

/** The version of NEKTE, as its library says it on the wire. */
export const NEKTE_VERSION = "0.2.0";

/** The name under which the platform as a whole speaks NEKTE. */
export const PLATFORM_AGENT = "depute";

/** How to call an agent, for one that reads the card alone. */
const INSTRUCTIONS =
  'Post JSON-RPC to the endpoint. Call nekte.discover first: {"jsonrpc": "2.0", "id": 1, "method": "nekte.discover", ' +
  '"params": {"level": 0}}. Level 0 (L0) lists ids, categories and hashes, level 1 (L1) adds descriptions and costs, ' +
  'level 2 (L2) adds schemas: ask it of the one capability that you need, with "filter": {"id": "..."}. Send its hash h with ' +
  'every nekte.invoke. State a budget, {"max_tokens": 100, "detail_level": "compact"}: results step down from full to ' +
  "compact to minimal. nekte.introspect explains the rest; name a topic (budget, discovery, errors, tasks) to read less.";

/** What the card of an agent, or of the platform, is made of. */
export interface CardParts {
  readonly agent: string;
  /** What the agent says of itself; empty for nothing. */
  readonly description: string;
  /** The URL that calls are posted to. */
  readonly endpoint: string;
  readonly caps: readonly string[];
  readonly auth: "bearer" | "none";
}

/** The agent card, as it stands at `.well-known/nekte.json` (NEKTE library). */
export function agentCard({ agent, description, endpoint, caps, auth }: CardParts): JsonValue {
  const card = {
    nekte: NEKTE_VERSION,
    agent,
    endpoint,
    caps: [...caps],
    auth,
    budgetSupport: true,
    instructions: description === "" ? INSTRUCTIONS : `${description}\n\n${INSTRUCTIONS}`,
  };
  return encode(AgentCardSchema, create(AgentCardSchema, card));
}
