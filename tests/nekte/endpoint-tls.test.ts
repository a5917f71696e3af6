import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectTo } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Helper, startPlatformProcess } from "@depute/example-sentiment/processes";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certified, selfSigned } from "./certificate.ts";
import { FLAGS, kinds, lastOf, register } from "./endpoint-scene.ts";
import { serveGrpc, serveHttp, TextAgent, type TextServer } from "./text-server.ts";

const trusted = selfSigned("trusted");
const elsewhere = selfSigned("elsewhere", [127, 0, 0, 2]);
const unknown = selfSigned("unknown");

let folder = "";
let platform: Helper<string> | undefined;
let clients: ReturnType<typeof connectTo>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-tls-"));
  const authorities = join(folder, "authorities.pem");
  writeFileSync(authorities, `${trusted.cert}${elsewhere.cert}`);
  const args = ["start", ...FLAGS, "--data-dir", folder, "--log-level", "error", "--gateway-port", "0"];
  // Clears gRPC's own trust setting, so that this machine's environment cannot change the outcome.
  const env = { NODE_EXTRA_CA_CERTS: authorities, GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: "" };
  platform = await startPlatformProcess(args, env);
  clients = connectTo(platform.about);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Creates a task for an agent behind TLS, and returns all events of the task. */
async function workBehind(
  serve: (agent: TextAgent, certified: Certified) => Promise<TextServer>,
  certified: Certified,
  maxAttempts = 1,
): Promise<{ agent: TextAgent; events: TaskEvent[] }> {
  const agent = new TextAgent();
  const server = await serve(agent, certified);
  const agentId = await register(server.endpoint, { clients });
  const events: TaskEvent[] = [];
  const draft = { agentId, description: "count", retry: { maxAttempts } };
  for await (const { taskEvent: event } of clients.tasks.delegateTask({
    requestId: crypto.randomUUID(),
    draft,
  })) {
    if (event !== undefined) events.push(event);
  }
  await server.stop();
  return { agent, events };
}

describe.concurrent.each<[string, Parameters<typeof workBehind>[0]]>([
  ["https", (agent, certified) => serveHttp(agent, 0, certified)],
  ["grpcs", serveGrpc],
])("an agent's %s address", (_, serve) => {
  test("is called where its certificate is trusted", async () => {
    const { agent, events } = await workBehind(serve, trusted);
    expect(kinds(events).at(-1)).toBe("completed");
    expect(agent.callsOf("nekte.delegate")).toHaveLength(1);
  });

  test("receives nothing if its certificate is for another host", async () => {
    const { agent, events } = await workBehind(serve, elsewhere);
    const message = expect.stringContaining("does not match certificate's altnames");
    expect(lastOf(events)).toMatchObject({
      case: "failed",
      value: { reason: "ENDPOINT_UNREACHABLE", message },
    });
    expect(agent.calls).toEqual([]);
  });

  test("receives nothing without a trusted certificate, like an unreachable endpoint", async () => {
    const { agent, events } = await workBehind(serve, unknown, 2);

    const untrusted = {
      reason: "ENDPOINT_UNREACHABLE",
      message: expect.stringContaining("self-signed certificate"),
      retryable: true,
    };
    const retried = events.find(({ payload }) => payload.case === "requeued");
    expect(retried?.payload.value).toMatchObject({ attempt: 1, attemptCounted: true, cause: untrusted });
    expect(lastOf(events)).toMatchObject({ case: "failed", value: untrusted });
    expect(agent.calls).toEqual([]);
  });
});
