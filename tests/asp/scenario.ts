import { readFileSync } from "node:fs";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { type Session, SessionState } from "@depute/contracts/asp/v0/session_pb";
import { newId } from "@depute/core";
import { type Agent, ALPHA, BETA, GAMMA, type Wire, write } from "./cast.ts";

const { INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED } = SessionState;

export type Line = readonly [Agent, keyof typeof Performative, JsonObject, SessionState, string?];

const identity = ({ uri, key }: Agent): JsonObject => ({
  informType: "identity",
  data: { agentId: uri, name: "A", signingPublicKey: { kty: "OKP", crv: "Ed25519", x: key } },
});

/** Returns the body of one of the specification's example messages, word for word. */
function said(name: string, more: JsonObject = {}): JsonObject {
  const path = new URL(`../../packages/wire/fixtures/asp/${name}.json`, import.meta.url);
  const { content } = JSON.parse(readFileSync(path, "utf8")) as { content: { body: JsonObject } };
  return { ...content.body, ...more };
}

/** The specification's proposal has expired, so the test's proposal ends later. */
const validUntil = new Date(Date.now() + 3 * 86_400_000).toISOString();

const rated = ({ uri: agentId }: Agent, stars: number): JsonObject => ({
  outcome: "fulfilled",
  ratings: [{ agentId, stars }],
});

/** The specification's scenario after the accepted invitation, with the session's state after each message. */
export const LINES: readonly Line[] = [
  [BETA, "ACCEPT", { referenceId: "inv" }, INVITED],
  [ALPHA, "INFORM", identity(ALPHA), INVITED],
  [BETA, "INFORM", identity(BETA), INTRODUCED],
  [ALPHA, "PROPOSE", said("message-1-propose", { validUntil }), CONVERSING, BETA.uri],
  [BETA, "CLARIFY", said("message-2-clarify"), CONVERSING],
  [ALPHA, "INFORM", said("message-3-inform-fact"), CONVERSING],
  [BETA, "DELEGATE", said("message-4-delegate"), CONVERSING],
  [GAMMA, "ACCEPT", said("message-5-accept-delegation"), CONVERSING, BETA.uri],
  [GAMMA, "INFORM", said("message-6-inform-result"), CONVERSING, BETA.uri],
  [BETA, "ACCEPT", said("message-7-accept-proposal"), CONVERSING],
  [ALPHA, "COMMIT", said("message-8-commit"), AGREEING],
  [BETA, "ACCEPT", said("message-9-accept-commitment"), EXECUTING],
  [BETA, "INFORM", { informType: "result", references: ["cmt_lic_001"] }, EXECUTING],
  [ALPHA, "CLOSE", rated(BETA, 5), EXECUTING],
  [BETA, "CLOSE", rated(ALPHA, 4), CLOSED],
];

/** The invitation that opens the session. */
export const INVITATION: Line = [
  ALPHA,
  "PROPOSE",
  { proposalId: "inv", type: "session-invitation", subject: "Licensing" },
  INVITED,
  BETA.uri,
];

/** Alpha invites Beta. */
export function invite(wire: Wire): Promise<Session> {
  const [who, performative, body, , recipient] = INVITATION;
  return wire.open(write(who, performative, body, { sessionId: newId() }, recipient));
}

/**
 * Plays the scenario up to a line, with a client for each agent. Returns the session's id and the states after each
 * message.
 */
export async function play(wires: ReadonlyMap<Agent, Wire>, count = LINES.length) {
  const of = (agent: Agent): Wire => {
    const wire = wires.get(agent);
    if (wire === undefined) throw new Error(`${agent.uri} has no client`);
    return wire;
  };
  const { sessionId } = await invite(of(ALPHA));
  const states: SessionState[] = [];
  for (const [who, performative, body, , recipient] of LINES.slice(0, count)) {
    const wire = of(who);
    await wire.append(write(who, performative, body, await wire.get(sessionId), recipient));
    states.push((await wire.get(sessionId)).state);
  }
  return { sessionId, states };
}
