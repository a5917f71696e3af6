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

const commitment: JsonObject = {
  commitmentId: "cmt_lic_001",
  type: "agreement",
  subject: "Enterprise software licensing: 100 seats, 12 months",
  obligations: {
    buyer: { party: ALPHA.uri, action: "Pay $60,000 annually for 100 enterprise seats" },
    vendor: { party: BETA.uri, action: "Provision 100 enterprise seats with SLA" },
  },
  escrow: { amount: 5000, currency: "USD", releaseCondition: "seats-provisioned" },
};

const rated = ({ uri: agentId }: Agent, stars: number): JsonObject => ({
  outcome: "fulfilled",
  ratings: [{ agentId, stars }],
});

/** The text's scenario, from the acceptance of the invitation on, with the state after each message. */
export const LINES: readonly Line[] = [
  [BETA, "ACCEPT", { referenceId: "inv" }, INVITED],
  [ALPHA, "INFORM", identity(ALPHA), INVITED],
  [BETA, "INFORM", identity(BETA), INTRODUCED],
  [
    ALPHA,
    "PROPOSE",
    { proposalId: "prop_lic_001", type: "terms", subject: "Licensing", terms: { seats: 100 } },
    CONVERSING,
    BETA.uri,
  ],
  [
    BETA,
    "CLARIFY",
    { referenceId: "prop_lic_001", questions: [{ question: "Which certificates?" }] },
    CONVERSING,
  ],
  [ALPHA, "INFORM", { informType: "fact", references: ["prop_lic_001"] }, CONVERSING],
  [
    BETA,
    "DELEGATE",
    {
      delegationId: "del_001",
      targetAgent: GAMMA.uri,
      scope: "Verify.",
      authority: "advisory",
      returnTo: BETA.uri,
    },
    CONVERSING,
  ],
  [GAMMA, "ACCEPT", { referenceId: "del_001" }, CONVERSING, BETA.uri],
  [GAMMA, "INFORM", { informType: "result", references: ["del_001"] }, CONVERSING, BETA.uri],
  [BETA, "ACCEPT", { referenceId: "prop_lic_001" }, CONVERSING],
  [ALPHA, "COMMIT", commitment, AGREEING],
  [BETA, "ACCEPT", { referenceId: "cmt_lic_001" }, EXECUTING],
  [BETA, "INFORM", { informType: "result", references: ["cmt_lic_001"] }, EXECUTING],
  [ALPHA, "CLOSE", rated(BETA, 5), EXECUTING],
  [BETA, "CLOSE", rated(ALPHA, 4), CLOSED],
];

/** Alpha invites Beta. */
export function invite(wire: Wire): Promise<Session> {
  const body = { proposalId: "inv", type: "session-invitation", subject: "Licensing" };
  return wire.open(write(ALPHA, "PROPOSE", body, { sessionId: newId() }, BETA.uri));
}

/** Plays the scenario up to a line, each agent by its own client; gives the states after each message. */
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
