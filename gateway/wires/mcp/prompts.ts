import type { OwnPrompt } from "@depute/mcp";

const argument = (name: string, description: string, required = true) => ({ name, description, required });

/** The prompts for the main activities of a delegator. */
export const OWN_PROMPTS: readonly OwnPrompt[] = [
  {
    name: "delegate",
    description: "Finds an agent for some work, delegates the work to it, and returns the result.",
    arguments: [
      argument("work", "the work to do, in words"),
      argument("agent", "id of the agent; if absent, the model chooses one", false),
    ],
    text: ({ work = "", agent }) =>
      [
        `Delegate this work: ${work}`,
        agent === undefined
          ? "Call discover with words of the work, at level 2, and choose the capability whose description and schema fit best."
          : `Call discover for the agent ${agent}, at level 2, to learn its capabilities.`,
        "Call delegate with an input that fits the capability's schema; if no capability fits, call it with a description.",
        "Call watch with wait_ms until the task has ended. If it asks a question, ask me, and call answer with my answer.",
        "Report the output, or the reason of the failure. Do not do the work yourself.",
      ].join("\n"),
  },
  {
    name: "follow",
    description: "Describes the state of a task, and what it needs.",
    arguments: [argument("task", "id of the task")],
    text: ({ task = "" }) =>
      [
        `Call watch for the task ${task}.`,
        "Report its status, its progress and its last event. If it asks a question, show me the question with its details.",
        "If it failed, report the reason, and whether to delegate it again.",
      ].join("\n"),
  },
  {
    name: "verify",
    description: "Checks whether the result of a task can be trusted.",
    arguments: [argument("task", "id of the task")],
    text: ({ task = "" }) =>
      [
        `Read the resource depute://tasks/${task}/verification.`,
        "If it names an attestation, call verify with the attestation and the output of the task.",
        "If it names only a contract, call verify with the contract and the output.",
        "Report which checks passed, which failed, and which principal signed. Call a result without contract and attestation unverified.",
      ].join("\n"),
  },
];
