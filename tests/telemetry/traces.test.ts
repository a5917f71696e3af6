import { redisForTests } from "@depute/bus/testing";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { CleanUp, dataFolder } from "../faults/platform.ts";
import { type Span, startReceiver } from "./receiver.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());
const redis = await redisForTests();
afterAll(() => redis?.stop());

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";

/**
 * Registers an agent, creates a task and discovers agents under the trace TRACE, and stops the platform. Returns
 * the recorded spans of that trace.
 */
async function traced(args: readonly string[], env: Record<string, string>): Promise<Span[]> {
  const receiver = await startReceiver();
  cleanUp.add(() => receiver.stop());
  const settings = { DEPUTE_DATA_DIR: await dataFolder(cleanUp), DEPUTE_LOG_LEVEL: "error", ...env };
  const { about: url, stop } = await startPlatformProcess(args, {
    ...settings,
    DEPUTE_OTLP_ENDPOINT: receiver.url,
  });
  cleanUp.add(() => stop());
  const post = async (path: string, body: unknown) => {
    const headers = { "content-type": "application/json", traceparent: `00-${TRACE}-${CALLER}-01` };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBe(200);
  };
  await post("/depute.registry.v1.AgentService/RegisterAgent", { requestId: "a", agent: { id: "worker" } });
  await post("/depute.tasks.v1.TaskService/CreateTask", {
    requestId: "t",
    draft: { agentId: "worker", description: "anything" },
  });
  await post("/nekte/worker", { jsonrpc: "2.0", id: 1, method: "nekte.discover", params: { level: 0 } });
  await stop();
  return receiver.spans.filter(({ traceId }) => traceId === TRACE);
}

/** Returns the names of the spans from a span up to the caller's. */
function ancestry(spans: readonly Span[], from: Span | undefined): string[] {
  const names: string[] = [];
  for (let span = from; span !== undefined; ) {
    names.push(span.name);
    const { parentSpanId } = span;
    if (parentSpanId === CALLER) return [...names, "caller"];
    span = spans.find(({ spanId }) => spanId === parentSpanId);
  }
  return names;
}

describe("a call's trace leads through every service that it reaches", () => {
  test("in one process", { timeout: 60_000 }, async () => {
    const spans = await traced(["start"], { DEPUTE_GATEWAY_PORT: "0" });
    const lookUps = spans.filter(({ name }) => name.endsWith("AgentService/GetAgent"));
    const paths = lookUps.map((span) => ancestry(spans, span));
    expect(paths.some((path) => path.includes("depute.tasks.v1.TaskService/CreateTask"))).toBe(true);
    expect(new Set(paths.map((path) => path.at(-1)))).toEqual(new Set(["caller"]));
    // One process hosts all services, and each has its own name.
    expect(new Set(spans.map(({ process }) => process))).toEqual(new Set(["gateway", "registry", "tasks"]));
    const overNekte = spans.findLast(({ name }) => name.includes("DiscoveryService/"));
    expect(ancestry(spans, overNekte).slice(-2)).toEqual(["POST /nekte/{agent}", "caller"]);
  });

  test.runIf(redis !== undefined)("in five processes", { timeout: 60_000 }, async () => {
    const names = ["GATEWAY", "REGISTRY", "TASKS", "TOKENS", "VERIFIER"];
    const ports = await freePorts(names.length);
    const env = Object.fromEntries(names.map((name, n) => [`DEPUTE_${name}_PORT`, String(ports[n])]));
    const spans = await traced(["cluster"], { ...env, DEPUTE_REDIS_URL: redis?.url ?? "" });
    const deepest = spans.findLast(
      ({ name, process }) => name.endsWith("AgentService/GetAgent") && process === "registry",
    );
    expect(ancestry(spans, deepest).at(-1)).toBe("caller");
    expect(new Set(spans.map(({ process }) => process))).toEqual(new Set(["gateway", "registry", "tasks"]));
  });
});
