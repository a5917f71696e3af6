import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { decode } from "@depute/wire";
import { afterEach, expect, test } from "vitest";
import { startApart } from "../gateway/platform.ts";
import { type Answer, type Cast, example, type Json, secretOf, startCast } from "./cast.ts";

const EXAMPLE = [
  "example-01-delegation-to-pm",
  "example-02-question-to-user",
  "example-03-answer-of-user",
  "example-04-delegation-to-analyst",
  "example-05-question-to-pm",
  "example-06-answer-to-analyst",
  "example-07-delegation-to-qa",
  "example-08-oversight-inquiry",
  "example-09-answer-to-qa",
  "example-10-approval-in-words",
  "example-11-result",
].map((name): Json => example(name));

const EFFECTS = [
  "delegated",
  "said",
  "said",
  "delegated",
  "said",
  "said",
  "submitted",
  "inquired",
  "said",
  "approved",
  "completed",
];

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

async function cast(start?: typeof startApart): Promise<Cast> {
  const started = await startCast(["--cap-plain-approval"], start as never);
  undo.push(() => started.stop());
  return started;
}

test("the text's example runs with every service in its own process", { timeout: 60_000 }, async () => {
  const { as } = await cast(startApart);
  const effects: string[] = [];
  for (const message of EXAMPLE) {
    if (message.type === "delegation_notice" && message.sender_id !== "orchestrator") {
      const refused = await as(message.sender_id).send({ ...message, recipient_id: "stranger-1" });
      expect(refused).toMatchObject({ status: 403, body: { reason: "MESSAGE_NOT_ALLOWED" } });
    }
    effects.push((await as(message.sender_id).send(message)).body.effect);
  }
  expect(effects).toEqual(EFFECTS);
});

test("the text's example runs over gRPC", async () => {
  const { platform } = await cast();
  const messages = createClient(MessageService, platform.transport);
  const asPlayer = (id: string) => ({ headers: { authorization: `Bearer ${secretOf(id)}` } });
  const effects: string[] = [];
  for (const document of EXAMPLE) {
    const decoded = decode(CapMessageSchema, document);
    if (!decoded.ok) throw new Error(decoded.error.message);
    const { effect } = await messages.sendMessage({ message: decoded.message }, asPlayer(document.sender_id));
    effects.push(
      Object.entries(MessageEffect)
        .find(([, value]) => value === effect)?.[0]
        .toLowerCase() ?? "",
    );
  }
  expect(effects).toEqual(EFFECTS);
  const { text, root } = await messages.traceLineage({ taskId: "T1.1.1" }, asPlayer("user"));
  expect(text).toContain("T1.1.1 analyst-1 -> qa-1 (completed, reviews T1.1)");
  expect(root).toMatchObject({ taskId: "T1", tasks: [{ taskId: "T1.1", tasks: [{ taskId: "T1.1.1" }] }] });
});

test("a platform that is killed repeatedly continues where it stopped", { timeout: 120_000 }, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-cap-"));
  undo.push(async () => rmSync(dataDir, { recursive: true, force: true }));
  const environment = {
    DEPUTE_DATA_DIR: dataDir,
    DEPUTE_LOG_LEVEL: "fatal",
    DEPUTE_GATEWAY_PORT: "0",
    DEPUTE_CAP_PLAIN_APPROVAL: "true",
  };
  const start = async () => {
    const platform = await startPlatformProcess(["start"], environment);
    undo.push(() => platform.stop("SIGKILL"));
    return platform;
  };
  let platform = await start();
  // Callers need no credentials on an open loopback.
  const ask = async (method: string, path: string, body?: Json, key?: string): Promise<Answer> => {
    const headers = { "content-type": "application/json", ...(key && { "idempotency-key": key }) };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`${platform.about}${path}`, init);
    return { status: response.status, body: await response.json() };
  };
  for (const id of ["pm-1", "analyst-1", "qa-1"])
    await ask("PUT", `/cap/agents/${id}`, example(`manifest-${id}`));
  const effects: string[] = [];
  for (const [at, message] of EXAMPLE.entries()) {
    const sent = await ask("POST", "/cap/messages", message, `message-${at}`);
    effects.push(sent.body.effect);
    // Every answer is durable: a caller that missed the answer repeats its message and gets the same answer.
    // Every fourth message tests this.
    if (at % 4 !== 2) continue;
    await platform.stop("SIGKILL");
    platform = await start();
    const again = await ask("POST", "/cap/messages", message, `message-${at}`);
    expect(again.body.message_id).toBe(sent.body.message_id);
  }
  expect(effects).toEqual(EFFECTS);
  const { body } = await ask("GET", "/cap/inbox/pm-1");
  expect(body.messages.map(({ sequence }: Json) => sequence)).toEqual([1, 2, 3, 4, 5]);
  const lineage = (await ask("GET", "/cap/tasks/T1")).body;
  expect(lineage).toMatchObject({
    status: "completed",
    tasks: [{ status: "completed", tasks: [{ status: "completed" }] }],
  });
});
