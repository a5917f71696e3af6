import { nativeEngine } from "@depute/dct/native";
import { ALPHA, BETA, GAMMA, identity, proposal, SESSION_ID, Stage } from "./stage.ts";

/** Plays a session of three participants, from the invitation to an accepted proposal. */
export function played(sessionId: string = SESSION_ID): Stage {
  const stage = new Stage(undefined, nativeEngine, sessionId);
  const say = (...line: Parameters<Stage["say"]>) => {
    stage.pass(1000);
    stage.say(...line);
  };
  const invitation = { proposalId: "inv", type: "session-invitation", subject: "s" };
  say(ALPHA, "PROPOSE", invitation, { recipient: BETA.agentId });
  say(BETA, "ACCEPT", { referenceId: "inv" });
  say(ALPHA, "INFORM", identity(ALPHA));
  say(BETA, "INFORM", identity(BETA));
  say(ALPHA, "PROPOSE", { ...proposal("prop"), note: "caf\u00e9 \ud83d\ude00" });
  const delegation = { delegationId: "del", targetAgent: GAMMA.agentId, scope: "Check.", authority: "full" };
  say(BETA, "DELEGATE", delegation);
  say(GAMMA, "ACCEPT", { referenceId: "del" });
  say(BETA, "ACCEPT", { referenceId: "prop" });
  stage.pass(1000);
  return stage;
}
