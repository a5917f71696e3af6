/** An A2A extension that the platform offers for every agent. docs/a2a.md describes each extension. (A2A 4.6) */
export interface A2aExtension {
  readonly uri: string;
  readonly description: string;
}

/** The extensions that agents' cards declare and that clients may activate. */
export const A2A_EXTENSIONS = {
  IDEMPOTENT_SEND: {
    uri: "https://depute.dev/a2a/extensions/idempotent-send/v1",
    description: "A repeated message of one messageId has the effect of one.",
  },
  RESUMABLE_STREAMS: {
    uri: "https://depute.dev/a2a/extensions/resumable-streams/v1",
    description: "Every event has its sequence, and SubscribeToTask goes on after a sequence.",
  },
  BUDGETS: {
    uri: "https://depute.dev/a2a/extensions/budgets/v1",
    description: "A message limits the tokens and the cost of its task, and the task states its usage.",
  },
  VERIFIED_RESULTS: {
    uri: "https://depute.dev/a2a/extensions/verified-results/v1",
    description: "A message names the contract of its task, and the task states how its result was checked.",
  },
  DELEGATED_AUTHORITY: {
    uri: "https://depute.dev/a2a/extensions/delegated-authority/v1",
    description: "A message hands the agent a DelegateOS token, under which it works.",
  },
  ACTOR_CHAIN: {
    uri: "https://depute.dev/a2a/extensions/actor-chain/v1",
    description: "A task states on whose behalf, and through whom, its agent works.",
  },
  SUSPENSION: {
    uri: "https://depute.dev/a2a/extensions/suspension/v1",
    description: "A message suspends a task at its next checkpoint, or resumes it from there.",
  },
} as const satisfies Record<string, A2aExtension>;
