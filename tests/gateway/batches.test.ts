import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { JSON_OPTIONS } from "@depute/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "worker", []);
});
afterAll(() => platform.stop());

const requests = (name: string) => [
  { requestId: `${name} 1`, draft: { agentId: "worker" } },
  { requestId: `${name} 2`, draft: { agentId: "nobody" } },
];
const REFUSED = {
  code: 5,
  message: "the agent nobody does not exist, is not live, or is not visible to the caller; check the id",
  details: [
    {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: "AGENT_NOT_FOUND",
      domain: "depute.dev",
      metadata: { agent: "nobody" },
    },
  ],
};

test("a refusal within a batch has its details in JSON", async () => {
  const answer = await fetch(`${platform.url}/depute.tasks.v1.TaskService/BatchCreateTasks`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ requests: requests("plain") }),
  });
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { outcomes: [{ taskId: expect.any(String) }, { error: REFUSED }] },
  ]);
});

test.each(["1.1", "2"] as const)("a client that speaks JSON over HTTP/%s reads it", async (httpVersion) => {
  const transport = createConnectTransport({
    baseUrl: platform.url,
    httpVersion,
    useBinaryFormat: false,
    jsonOptions: JSON_OPTIONS,
  });
  const { outcomes } = await createClient(TaskService, transport).batchCreateTasks({
    requests: requests(httpVersion),
  });
  expect(outcomes.map(({ outcome }) => outcome.case)).toEqual(["taskId", "error"]);
});
