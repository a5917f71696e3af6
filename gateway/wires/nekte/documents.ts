import { create, type JsonValue } from "@bufbuild/protobuf";
import { AgentCardSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { encode } from "@depute/wire";

/** The version of NEKTE, in the form of the NEKTE library. */
export const NEKTE_VERSION = "0.2.0";

/** The agent name in answers of the platform if a request addresses no single agent. */
export const PLATFORM_AGENT = "depute";

/** Explains how to call an agent, for readers who have only the agent's card. */
const INSTRUCTIONS =
  'Post JSON-RPC to the endpoint. Call nekte.discover first: {"jsonrpc": "2.0", "id": 1, "method": "nekte.discover", ' +
  '"params": {"level": 0}}. Level 0 (L0) lists ids, categories and hashes, level 1 (L1) adds descriptions and costs, ' +
  'level 2 (L2) adds schemas: request it only for the capability that you need, with "filter": {"id": "..."}. Send its hash h with ' +
  'every nekte.invoke. State a budget, {"max_tokens": 100, "detail_level": "compact"}: if a result does not fit, the platform sends a lower level: full, ' +
  "compact, minimal. nekte.introspect explains all methods; name a topic (budget, discovery, errors, tasks) to read less.";

/** The contents of an agent card, of an agent or of the platform. */
export interface CardParts {
  readonly agent: string;
  /** The agent's description of itself; empty if it has none. */
  readonly description: string;
  /** The URL to which callers post calls. */
  readonly endpoint: string;
  readonly caps: readonly string[];
  readonly auth: "bearer" | "none";
}

/** Creates the agent card `.well-known/nekte.json` (NEKTE library). */
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
