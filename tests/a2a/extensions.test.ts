import { TaskState } from "@a2a-js/sdk";
import { A2A_EXTENSIONS } from "@depute/core";
import { describe, expect, test } from "vitest";
import { all, BINDINGS, request, Scene, userMessage } from "./scene.ts";

const { IDEMPOTENT_SEND, RESUMABLE_STREAMS } = A2A_EXTENSIONS;

describe.each(BINDINGS)("extensions over %s", (binding) => {
  const scene = new Scene(binding);
  const active = (uri: string, more: Record<string, string> = {}) => ({
    serviceParameters: { "A2A-Extensions": uri, ...more },
  });

  test("a repeated message counts once if the client requests it", async () => {
    const message = userMessage("hello");
    const once = active(IDEMPOTENT_SEND.uri);
    const first = await scene.client.sendMessage(request(message), once);
    expect(await scene.client.sendMessage(request(message), once)).toEqual(first);
    const other = { ...userMessage("another"), messageId: message.messageId };
    await expect(scene.client.sendMessage(request(other), once)).rejects.toThrow();
    expect(await scene.send(message)).not.toMatchObject({ id: (first as { id: string }).id });
  });

  test("a stream continues after a sequence, without a gap and without a repetition", async () => {
    const numbered = active(RESUMABLE_STREAMS.uri);
    const events = await all(scene.client.sendMessageStream(request(userMessage("hello")), numbered));
    const sequences = events.map(
      ({ payload }) => payload?.value.metadata?.[RESUMABLE_STREAMS.uri]?.sequence as number,
    );
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
    const [task, cut = 0] = sequences;
    expect(task).toBe(1);
    const [first] = events;
    if (first?.payload?.$case !== "task") throw new Error("no task came first");
    const after = active(RESUMABLE_STREAMS.uri, { "A2A-After-Sequence": String(cut) });
    const rest = await all(scene.client.resubscribeTask({ tenant: "", id: first.payload.value.id }, after));
    expect(rest[0]?.payload).toMatchObject({
      $case: "task",
      value: { status: { state: TaskState.TASK_STATE_COMPLETED } },
    });
    expect(rest.slice(1)).toEqual(events.filter((_, index) => (sequences[index] ?? 0) > cut));
  });

  test("a client that activates no extension sees none", async () => {
    const events = await all(scene.client.sendMessageStream(request(userMessage("hello"))));
    expect(events.map(({ payload }) => payload?.value.metadata)).toEqual(events.map(() => undefined));
  });
});

test("the activated extensions are echoed, unknown ones are ignored", async () => {
  const { platform } = scene;
  const body = { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } };
  const stated = `https://example.com/unknown, ${IDEMPOTENT_SEND.uri}`;
  const answer = await platform.post("/a2a/worker", body, {
    "a2a-version": "1.0",
    "a2a-extensions": stated,
  });
  expect(answer.headers.get("a2a-extensions")).toBe(IDEMPOTENT_SEND.uri);
});
const scene = new Scene();
