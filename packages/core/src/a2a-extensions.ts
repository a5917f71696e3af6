/** An A2A extension that the platform offers for every agent. docs/a2a.md describes each extension. (A2A 4.6) */
export interface A2aExtension {
  readonly uri: string;
  readonly description: string;
}

/** The extensions that agents' cards declare and that clients may activate. */
export const A2A_EXTENSIONS = {
  IDEMPOTENT_SEND: {
    uri: "https://depute.dev/a2a/extensions/idempotent-send/v1",
    description: "A message with a messageId that was used before has no further effect.",
  },
  RESUMABLE_STREAMS: {
    uri: "https://depute.dev/a2a/extensions/resumable-streams/v1",
    description:
      "Every event has a sequence number, and SubscribeToTask continues after a given sequence number.",
  },
  BUDGETS: {
    uri: "https://depute.dev/a2a/extensions/budgets/v1",
    description: "A message may limit the tokens and the cost of its task, and the task states its usage.",
  },
  VERIFIED_RESULTS: {
    uri: "https://depute.dev/a2a/extensions/verified-results/v1",
    description:
      "A message may name the contract of its task, and the task states how its result was verified.",
  },
  DELEGATED_AUTHORITY: {
    uri: "https://depute.dev/a2a/extensions/delegated-authority/v1",
    description: "A message may contain a DelegateOS token that authorizes the agent's work.",
  },
  ACTOR_CHAIN: {
    uri: "https://depute.dev/a2a/extensions/actor-chain/v1",
    description:
      "A task states its delegator, and the chain of principals through which its agent got the task.",
  },
  SUSPENSION: {
    uri: "https://depute.dev/a2a/extensions/suspension/v1",
    description:
      "A message may suspend a task at its next checkpoint, or resume a suspended task from its checkpoint.",
  },
} as const satisfies Record<string, A2aExtension>;
