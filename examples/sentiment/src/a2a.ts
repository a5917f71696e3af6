import { type Message, Role, type StreamResponse, TaskState } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import type { Screen } from "./draw.ts";

/**
 * Delegates the same work to the agent as an A2A agent, with A2A's official client. The client reads the addresses from
 * the agent's card.
 *
 * @returns the value of the task's result
 * @throws Error when the task ends without a result
 */
export async function delegateOverA2a(
  url: string,
  agentId: string,
  texts: readonly string[],
  screen: Screen,
): Promise<unknown> {
  const client = await new ClientFactory().createFromUrl(url, `/a2a/${agentId}/.well-known/agent-card.json`);
  const request = {
    tenant: "",
    message: messageOf(texts),
    configuration: undefined,
    metadata: undefined,
  };
  let result: unknown;
  let state: TaskState | undefined;
  for await (const event of client.sendMessageStream(request)) {
    result = resultIn(event) ?? result;
    const status = statusIn(event);
    state = status?.state ?? state;
    const text = status?.message?.parts.map(({ content }) => content?.value).join(" ");
    if (text) screen.show(`   ${text}`);
  }
  if (state !== TaskState.TASK_STATE_COMPLETED) throw new Error(`the A2A task ended in state ${state}`);
  screen.say(`   completed: ${JSON.stringify(result)}`);
  return result;
}

function messageOf(texts: readonly string[]): Message {
  const content = { $case: "data", value: { texts } } as const;
  return {
    messageId: crypto.randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

/** Returns the value of an artifact update; undefined for any other element of a stream. */
function resultIn({ payload }: StreamResponse): unknown {
  return payload?.$case === "artifactUpdate" ? payload.value.artifact?.parts[0]?.content?.value : undefined;
}

/** Returns the task's status in an element of a stream; undefined for an element without one. */
function statusIn({ payload }: StreamResponse) {
  return payload?.$case === "task" || payload?.$case === "statusUpdate" ? payload.value.status : undefined;
}
