import { describe, expect, test } from "vitest";
import { Receiver } from "./receiver.ts";
import { all, BINDINGS, Scene } from "./scene.ts";
import { begin, config, withWebhook } from "./webhook-messages.ts";

const HOSTS = ["--a2a-webhook-hosts", "127.0.0.1,localhost"];
const SECRETS = { token: "word-1", authentication: { scheme: "Bearer", credentials: "sesame-1" } };

describe.each(BINDINGS)("webhooks over %s", (binding) => {
  const receiver = new Receiver();
  const scene = new Scene(binding, HOSTS);

  test("are created, read, listed in pages and deleted, and their secrets are not returned", async () => {
    const { client } = scene;
    const taskId = await begin(scene, "wait", receiver.url("/none"));
    const made = await client.createTaskPushNotificationConfig(config(taskId, receiver.url("/a"), SECRETS));
    expect(made).toMatchObject({ taskId, url: receiver.url("/a") });
    expect(JSON.stringify(made)).not.toMatch(/word-1|sesame-1/);
    expect(made.authentication?.scheme).toBe("Bearer");
    const named = { tenant: "", taskId, id: made.id };
    expect(await client.getTaskPushNotificationConfig(named)).toEqual(made);
    await client.createTaskPushNotificationConfig(config(taskId, receiver.url("/b"), { id: "mine" }));

    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await client.listTaskPushNotificationConfig({
        tenant: "",
        taskId,
        pageSize: 2,
        pageToken,
      });
      // The official client states no page size over HTTP+JSON.
      if (binding !== "HTTP+JSON") expect(page.configs.length).toBeLessThanOrEqual(2);
      expect(JSON.stringify(page)).not.toMatch(/word-1|sesame-1/);
      ids.push(...page.configs.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(ids).toHaveLength(3);
    expect(ids).toEqual(expect.arrayContaining([made.id, "mine"]));

    await client.deleteTaskPushNotificationConfig(named);
    await client.deleteTaskPushNotificationConfig(named);
    await expect(client.getTaskPushNotificationConfig(named)).rejects.toThrow();
    await client.cancelTask({ tenant: "", id: taskId, metadata: undefined });
    await expect.poll(() => receiver.seen("/b").at(-1)).toBe("CANCELED");
    expect(receiver.seen("/a")).not.toContain("CANCELED");
  });

  test("of a message get every event of the task in order, with the credentials", async () => {
    const taskId = await begin(scene, "hello", receiver.url("/hello"), SECRETS);
    await expect.poll(() => receiver.seen("/hello").at(-1)).toBe("COMPLETED");
    expect(receiver.seen("/hello")).toEqual(["WORKING", "artifact hello", "COMPLETED"]);
    for (const { headers, body } of receiver.at("/hello")) {
      expect(headers).toMatchObject({
        "content-type": "application/a2a+json",
        "x-a2a-notification-token": "word-1",
        authorization: "Bearer sesame-1",
      });
      expect((body.statusUpdate ?? body.artifactUpdate).taskId).toBe(taskId);
    }
  });

  test("of a streaming message get the events that the stream shows after the task", async () => {
    const shown = await all(scene.client.sendMessageStream(withWebhook("hello", receiver.url("/stream"))));
    await expect.poll(() => receiver.at("/stream").length).toBe(shown.length - 1);
    expect(receiver.seen("/stream")).toEqual(["WORKING", "artifact hello", "COMPLETED"]);
  });

  test("with an address that the platform may not call are refused before the task begins", async () => {
    const contextId = crypto.randomUUID();
    for (const url of ["https://example.com/", "http://10.0.0.1/", "ftp://127.0.0.1/", "nothing"]) {
      const { message, ...rest } = withWebhook("hello", url);
      const sent = scene.client.sendMessage({ ...rest, message: { ...message, contextId } });
      await expect(sent).rejects.toThrow(/may not call this address/);
    }
    const { tasks } = await scene.client.listTasks({
      tenant: "",
      contextId,
      status: 0,
      pageToken: "",
      pageSize: 10,
      historyLength: undefined,
      statusTimestampAfter: undefined,
      includeArtifacts: false,
    });
    expect(tasks).toEqual([]);
  });
});
