import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { connectTo } from "@depute/client";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { Health } from "@depute/contracts/grpc/health/v1/health_pb";
import { ServerReflection } from "@depute/contracts/grpc/reflection/v1/reflection_pb";
import { Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytes, introduce, startPlatform, type TestPlatform, value } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform(["--nekte-default-agent", "worker"]);
  await introduce(platform, "worker", [["sentiment", { type: "object", required: ["text"] }], ["waits"]]);
  platform.work("worker", async (input, { task, progress, signal, contexts }) => {
    if (task.capabilityId === "waits" || task.description === "wait") {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    await progress(1, 2, "half");
    const [context] = contexts;
    const data = context && JSON.parse(new TextDecoder().decode(context.envelope?.data));
    return { output: { got: data ?? input } };
  });
});
afterAll(() => platform.stop());

async function refusal(answer: Promise<unknown>) {
  const caught = await answer.then(
    () => undefined,
    (thrown: unknown) => ConnectError.from(thrown),
  );
  if (caught === undefined) throw new Error("nothing was refused");
  const [info] = caught.findDetails(ErrorInfoSchema);
  const fields = caught.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  return {
    code: caught.code,
    reason: info?.reason,
    metadata: info?.metadata,
    fields: fields.map(({ field }) => field),
  };
}

const SERVICES = [
  "depute.registry.v1.AgentService",
  "depute.registry.v1.DiscoveryService",
  "depute.tasks.v1.TaskService",
  "depute.tasks.v1.WorkerService",
  "depute.tokens.v1.RevocationService",
  "depute.tokens.v1.TokenService",
  "depute.verifier.v1.AttestationService",
  "depute.verifier.v1.ContractService",
  "depute.verifier.v1.VerificationService",
  "grpc.health.v1.Health",
  "nekte.v1.Nekte",
];

describe("the services through the gateway, with @grpc/grpc-js", () => {
  test("a unary call", async () => {
    const { agent } = await platform.clients.agents.getAgent({ agentId: "worker" });
    expect(agent).toMatchObject({ id: "worker", version: "1.2.0" });
  });

  test("a stream, to its end", async () => {
    const draft = { capabilityId: "sentiment", input: value({ text: "so so" }) };
    const cases: (string | undefined)[] = [];
    for await (const { taskEvent: event } of platform.clients.tasks.delegateTask({
      requestId: crypto.randomUUID(),
      draft,
    })) {
      cases.push(event?.payload.case);
    }
    expect(cases).toEqual(["created", "accepted", "started", "progress", "completed"]);
  });

  test("an error with all of its details", async () => {
    expect(await refusal(platform.clients.agents.getAgent({ agentId: "nobody" }))).toEqual({
      code: Code.NotFound,
      reason: "AGENT_NOT_FOUND",
      metadata: { agent: "nobody" },
      fields: [],
    });
    expect(await refusal(platform.clients.agents.listAgents({ pageSize: -1 }))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_REQUEST",
      fields: ["page_size"],
    });
    const draft = { capabilityId: "sentiment", input: value({}) };
    const stream = platform.clients.tasks.delegateTask({ requestId: crypto.randomUUID(), draft });
    expect(await refusal(stream[Symbol.asyncIterator]().next())).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INPUT_SCHEMA_VIOLATION",
      fields: ["draft.input"],
    });
  });

  test("the gateway does not wait for a client that leaves its stream", async () => {
    const leaving = new AbortController();
    const draft = { capabilityId: "waits", input: value({}) };
    const stream = platform.clients.tasks.delegateTask(
      { requestId: crypto.randomUUID(), draft },
      { signal: leaving.signal },
    );
    let taskId = "";
    await expect(
      (async () => {
        for await (const { taskEvent: event } of stream) {
          taskId = event?.taskId ?? "";
          leaving.abort();
        }
      })(),
    ).rejects.toThrow();
    await platform.clients.tasks.cancelTask({ taskId });
  });

  test("a deadline is kept", async () => {
    const leaving = platform.clients.revocations.watchRevocations({}, { timeoutMs: 50 });
    expect((await refusal(leaving[Symbol.asyncIterator]().next())).code).toBe(Code.DeadlineExceeded);
  });

  test("the same address serves Connect, and plain JSON over HTTP/1.1", async () => {
    const { agents } = await connectTo(platform.url).agents.listAgents({});
    expect(agents.map(({ id }) => id)).toEqual(["worker"]);
    const response = await platform.post(`/${AgentService.typeName}/ListAgents`, {});
    expect(await response.json()).toMatchObject({ agents: [{ id: "worker" }] });
  });
});

describe("the gateway's own services", () => {
  test("reflection lists every service", async () => {
    const client = createClient(ServerReflection, platform.transport);
    const requests = (async function* () {
      yield { messageRequest: { case: "listServices", value: "" } } as const;
    })();
    for await (const { messageResponse } of client.serverReflectionInfo(requests)) {
      if (messageResponse.case !== "listServicesResponse") throw new Error("another answer");
      const names = messageResponse.value.service.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(SERVICES));
      return;
    }
    throw new Error("no answer");
  });

  test.each(["google.rpc.ErrorInfo", "google.rpc.BadRequest", "depute.errors.v1.ErrorReason"])(
    "reflection returns %s, which the details of errors name",
    async (symbol) => {
      const client = createClient(ServerReflection, platform.transport);
      const requests = (async function* () {
        yield { messageRequest: { case: "fileContainingSymbol", value: symbol } } as const;
      })();
      for await (const { messageResponse } of client.serverReflectionInfo(requests)) {
        expect(messageResponse.case).toBe("fileDescriptorResponse");
        return;
      }
      throw new Error("no answer");
    },
  );

  test.each(SERVICES)("the health of %s", async (service) => {
    const health = createClient(Health, platform.transport);
    if (service === Health.typeName) return expect((await health.check({})).status).toBe(1);
    expect((await health.check({ service })).status).toBe(1);
  });
});

describe("nekte.v1.Nekte in its published form", () => {
  const nekte = () => createClient(Nekte, platform.transport);

  test("Discover fills only the list of the requested level", async () => {
    const [refs, summaries, schemas] = await Promise.all(
      [0, 1, 2].map((level) => nekte().discover({ level })),
    );
    expect(refs).toMatchObject({
      agent: "depute",
      refs: [{ id: "sentiment" }, { id: "waits" }],
      summaries: [],
      schemas: [],
    });
    expect(summaries).toMatchObject({ refs: [], summaries: [{ desc: "does sentiment" }, {}], schemas: [] });
    expect(schemas).toMatchObject({ refs: [], summaries: [], schemas: [{ id: "sentiment" }, {}] });
  });

  test("Invoke returns the output; an outdated hash gets the current one in the answer", async () => {
    const answer = await nekte().invoke({ cap: "sentiment", input: bytes({ text: "x" }) });
    expect(JSON.parse(new TextDecoder().decode(answer.output))).toEqual({ got: { text: "x" } });
    expect(answer).toMatchObject({ resolvedLevel: "compact", meta: { tokensUsed: 5 } });
    const outdated = await nekte().invoke({ cap: "sentiment", h: "00000000", input: bytes({ text: "x" }) });
    expect(outdated).toMatchObject({
      error: { code: -32001, message: "VERSION_MISMATCH", schema: { id: "sentiment" } },
    });
    expect(outdated.error?.currentHash).toBe(outdated.error?.schema?.h);
  });

  test("Delegate streams to the default agent; TaskStatus and TaskCancel find the task by the caller's id", async () => {
    const context = { data: bytes({ a: 1 }), permissions: {}, ttlS: 60 };
    const events: (string | undefined)[] = [];
    for await (const { event } of nekte().delegate({
      task: { id: "g1", desc: "x", timeoutMs: 20_000 },
      context,
    })) {
      events.push(event.case);
      if (event.case === "complete") {
        expect(event.value).toMatchObject({ taskId: "g1", status: "completed" });
        expect(new TextDecoder().decode(event.value.output?.compact)).toBe('{"got":{"a":1}}');
        // An absent result is the text "null", so that clients without field presence can still parse it as JSON.
        expect(new TextDecoder().decode(event.value.output?.full)).toBe("null");
      }
    }
    expect(events).toEqual(["progress", "complete"]);
    const rest: (bigint | undefined)[] = [];
    const again = { task: { id: "g1", desc: "x", timeoutMs: 20_000 }, context };
    for await (const { sequence } of nekte().delegate(again, { headers: { "last-event-id": "3" } })) {
      rest.push(sequence);
    }
    expect(rest).toEqual([4n, 5n]);
    const status = await nekte().taskStatus({ taskId: "g1" });
    expect(status).toMatchObject({
      taskId: "g1",
      status: "completed",
      progressProcessed: 1,
      progressTotal: 2,
    });
    expect(status.createdAt).toBeGreaterThan(0n);

    const stream = nekte().delegate({ task: { id: "g2", desc: "wait", timeoutMs: 20_000 }, context });
    const last = (async () => {
      let event: unknown;
      for await (const watched of stream) event = watched.event;
      return event;
    })();
    const isRunning = async () =>
      (
        await nekte()
          .taskStatus({ taskId: "g2" })
          .catch(() => undefined)
      )?.status === "running";
    while (!(await isRunning()));
    expect(await nekte().taskCancel({ taskId: "g2", reason: "enough" })).toMatchObject({
      taskId: "g2",
      status: "cancelled",
      previousStatus: "running",
    });
    expect(await last).toMatchObject({ case: "cancelled", value: { reason: "enough" } });
  });

  test("metadata select the agent", async () => {
    await introduce(platform, "other", [["sentiment"]]);
    platform.work("other", async () => ({ output: { by: "other" } }));
    const headers = { "nekte-agent": "other" };
    const input = bytes({ text: "x" });
    expect(await nekte().discover({ level: 0 }, { headers })).toMatchObject({
      agent: "other",
      version: "1.2.0",
      refs: [{ id: "sentiment" }],
    });
    expect(await refusal(nekte().invoke({ cap: "sentiment", input }))).toMatchObject({
      reason: "CAPABILITY_AMBIGUOUS",
    });
    const { output } = await nekte().invoke({ cap: "sentiment", input }, { headers });
    expect(new TextDecoder().decode(output)).toBe('{"by":"other"}');
    const task = { id: "named", desc: "x", timeoutMs: 20_000 };
    for await (const { event } of nekte().delegate({ task }, { headers })) {
      if (event.case !== "complete") continue;
      expect(new TextDecoder().decode(event.value.output?.compact)).toBe('{"by":"other"}');
    }
    const nobody = nekte().delegate(
      { task: { ...task, id: "lost" } },
      { headers: { "nekte-agent": "nobody" } },
    );
    expect(await refusal(nobody[Symbol.asyncIterator]().next())).toMatchObject({ reason: "AGENT_NOT_FOUND" });
    await platform.clients.agents.deregisterAgent({ agentId: "other" });
  });

  test("Context shares, reads and revokes", async () => {
    const envelope = { id: "c1", data: bytes({ a: 1 }), permissions: {}, ttlS: 60 };
    expect(await nekte().context({ envelope })).toMatchObject({ id: "c1", status: "stored" });
    const read = await nekte().context({ action: "request", envelope });
    expect(read).toMatchObject({ id: "c1", envelope: { id: "c1", ttlS: 60 } });
    expect(new TextDecoder().decode(read.envelope?.data)).toBe('{"a":1}');
    expect(await nekte().context({ action: "revoke", envelope })).toMatchObject({
      id: "c1",
      status: "revoked",
    });
    expect(await refusal(nekte().context({ action: "request", envelope }))).toMatchObject({
      code: Code.FailedPrecondition,
      metadata: { nekte_code: "-32004" },
    });
  });

  test("Verify checks a result and returns the outcome as JSON", async () => {
    const checked = await nekte().verify({ taskId: "g1", checks: ["hash", "source"] });
    expect(checked).toMatchObject({ taskId: "g1", checks: ["hash", "source"] });
    const { hash, source } = JSON.parse(new TextDecoder().decode(checked.data));
    expect(source).toEqual({ model: "worker", processed: 1 });
    expect(await nekte().verify({ taskId: "g1", resultHash: hash })).toMatchObject({ status: "verified" });
    expect(await refusal(nekte().verify({ taskId: "g1", resultHash: "0".repeat(12) }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "VERIFICATION_FAILED",
      metadata: { nekte_code: "-32008", checks: "hash" },
    });
  });

  test("a refusal has its status and the protocol's code", async () => {
    expect(await refusal(nekte().taskStatus({ taskId: "never" }))).toMatchObject({
      code: Code.NotFound,
      reason: "TASK_NOT_FOUND",
      metadata: { nekte_code: "-32009" },
    });
    expect(await refusal(nekte().taskCancel({ taskId: "g1" }))).toMatchObject({
      code: Code.FailedPrecondition,
      metadata: { nekte_code: "-32010" },
    });
    expect(await refusal(nekte().taskResume({ taskId: "g1" }))).toMatchObject({
      code: Code.FailedPrecondition,
      metadata: { nekte_code: "-32011" },
    });
    expect(await refusal(nekte().invoke({ cap: "nothing", input: bytes({}) }))).toMatchObject({
      code: Code.NotFound,
      metadata: { nekte_code: "-32002" },
    });
    expect(await refusal(nekte().invoke({ cap: "sentiment", input: Buffer.from("{") }))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "MALFORMED_JSON",
    });
    const scoped = { data: bytes(1), permissions: {}, ttlS: 1, scope: { capabilities: [] } };
    const stream = nekte().delegate({ task: { id: "g3", desc: "x", timeoutMs: 1000 }, context: scoped });
    expect(await refusal(stream[Symbol.asyncIterator]().next())).toMatchObject({
      code: Code.PermissionDenied,
      metadata: { nekte_code: "-32005" },
    });
  });
});
