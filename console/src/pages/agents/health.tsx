import { type Agent, AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { Tag } from "../../parts/facts.tsx";
import { enumWord } from "../../rules/enum-word.ts";
import type { Tone } from "../../rules/task-status.ts";

const TONES: Readonly<Partial<Record<AgentHealth, Tone>>> = {
  [AgentHealth.ALIVE]: "good",
  [AgentHealth.SUSPECT]: "waiting",
  [AgentHealth.LOST]: "bad",
};

/** Shows the health of an active agent, or the status of any other agent. */
export function Health({ agent: { health, status } }: { readonly agent: Agent }) {
  if (status !== AgentStatus.ACTIVE) {
    return (
      <Tag tone={status === AgentStatus.REMOVED ? "bad" : "waiting"}>{enumWord(AgentStatus, status)}</Tag>
    );
  }
  return <Tag tone={TONES[health] ?? "neutral"}>{enumWord(AgentHealth, health)}</Tag>;
}
