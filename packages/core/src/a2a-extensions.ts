/** An A2A extension that the platform offers for every agent. docs/a2a.md describes each. (A2A 4.6) */
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
} as const satisfies Record<string, A2aExtension>;
