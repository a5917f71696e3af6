import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, DAY_MS, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import type { ProcessContexts } from "../contexts/process-contexts.ts";
import { readContext } from "../store/context-rows.ts";

const CAROL = `${"E".repeat(42)}Q`;
const [HER, ME, OTHER] = [asCaller(ALICE), asCaller(BOB), asCaller(CAROL)];

let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.agents.set("carol", { principal: CAROL, active: true });
});
afterEach(() => bench.close());

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const SECRET = json({ note: "between us" });
const ALL = { forward: true, persist: true, derive: true };

interface Sharing {
  permissions?: { forward?: boolean; persist?: boolean; derive?: boolean };
  readers?: string[];
  from?: string[];
  envelope?: {
    id?: string;
    data?: Uint8Array<ArrayBuffer>;
    ttlS?: number;
    scope?: { capabilities: string[] };
  };
  requestId?: string;
}

async function share(
  { permissions = ALL, readers = [], from = [], envelope = {}, requestId }: Sharing,
  options = HER,
) {
  const request = {
    requestId: requestId ?? `request ${++count}`,
    envelope: { data: SECRET, ttlS: 60, permissions, ...envelope },
    readerAgentIds: readers,
    derivedFrom: from,
  };
  return (await bench.contexts.shareContext(request, options)).context?.id ?? "";
}

const heldBytesOf = ({ runtime }: Bench) => (runtime.context.contextMemory as ProcessContexts).bytes;

const request = (id: string, options = HER, capabilityId = "") =>
  bench.contexts.requestContext({ name: { case: "contextId", value: id }, capabilityId }, options);
const revoke = (id: string, options = HER) =>
  bench.contexts.revokeContext({ name: { case: "contextId", value: id } }, options);

async function delegate(
  contextIds: string[],
  options = HER,
  draft: { agentId?: string; parentTaskId?: string } = {},
) {
  const requestId = `request ${++count}`;
  const fullDraft = { agentId: "bob", description: requestId, contextIds, ...draft };
  return (await bench.tasks.createTask({ requestId, draft: fullDraft }, options)).task?.id ?? "";
}

describe("a shared context", () => {
  test.each([true, false])("is read by its owner and its readers alone (persist: %s)", async (persist) => {
    const id = await share({ permissions: { ...ALL, persist }, readers: ["bob"] });
    for (const options of [HER, ME])
      expect((await request(id, options)).context?.envelope?.data).toEqual(SECRET);
    expect(await refusal(request(id, OTHER))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
  });

  test.each([true, false])("expires at the end of its time to live (persist: %s)", async (persist) => {
    const id = await share({ permissions: { ...ALL, persist }, readers: ["bob"] });
    await bench.pass(59_999);
    await request(id, ME);
    await bench.pass(1);
    for (const options of [HER, ME]) {
      expect(await refusal(request(id, options))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
    }
    expect(await refusal(request(id, OTHER))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
    expect(await refusal(delegate([id]))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
  });

  test.each([true, false])(
    "is known for a while after its expiry, without its data (persist: %s)",
    async (persist) => {
      const id = await share({ permissions: { ...ALL, persist }, readers: ["bob"] });
      await bench.pass(60_000);
      await bench.runtime.contextKeeper.purge();
      const storedContext = await bench.runtime.context.engine.store.read((tx) =>
        readContext(tx, bench.runtime.context.contextMemory, id),
      );
      expect(storedContext).toMatchObject({ dataIn: "nowhere", envelope: { data: new Uint8Array() } });
      expect(await refusal(request(id, ME))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
      await bench.pass(DAY_MS);
      await bench.runtime.contextKeeper.purge();
      expect(await refusal(request(id, ME))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
    },
  );

  test.each([true, false])("frees its external id when it expires (persist: %s)", async (persist) => {
    const permissions = { ...ALL, persist };
    const first = await share({ permissions, requestId: "one", envelope: { id: "mine" } });
    await bench.pass(60_000);
    const second = await share({
      permissions,
      requestId: "two",
      envelope: { id: "mine", data: json("new") },
    });
    expect(second).not.toBe(first);
    const lookup = await bench.contexts.requestContext({ name: { case: "externalId", value: "mine" } }, HER);
    expect(lookup.context?.envelope?.data).toEqual(json("new"));
    expect(await refusal(request(first))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
  });

  test.each([true, false])(
    "ends when its owner revokes it, and no other caller can revoke it (persist: %s)",
    async (persist) => {
      const id = await share({ permissions: { ...ALL, persist }, readers: ["bob"] });
      expect(await refusal(revoke(id, ME))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
      expect(await refusal(revoke(id, OTHER))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
      await revoke(id);
      await revoke(id);
      expect(await refusal(request(id, ME))).toMatchObject({
        reason: "CONTEXT_EXPIRED",
        metadata: { context: id },
      });
      expect(await refusal(request(id))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
    },
  );

  test("is valid for the capabilities of its scope alone", async () => {
    const id = await share({ envelope: { scope: { capabilities: ["shout"] } } });
    await request(id, HER, "shout");
    expect(await refusal(request(id, HER, "whisper"))).toMatchObject({
      reason: "CONTEXT_PERMISSION_DENIED",
      metadata: { capability: "whisper" },
    });
    expect(await refusal(delegate([id]))).toMatchObject({ reason: "CONTEXT_PERMISSION_DENIED" });
  });

  test.each([true, false])(
    "is created once for a request id, and once for its owner's external id (persist: %s)",
    async (persist) => {
      const permissions = { ...ALL, persist };
      const id = await share({ permissions, requestId: "once", envelope: { id: "mine" } });
      expect(await share({ permissions, requestId: "once", envelope: { id: "mine" } })).toBe(id);
      expect(await share({ permissions, requestId: "twice", envelope: { id: "mine" } })).toBe(id);
      const other = { permissions, envelope: { id: "mine", ttlS: 7 } };
      expect(await refusal(share({ ...other, requestId: "once" }))).toMatchObject({
        reason: "REQUEST_ID_REUSED",
      });
      expect(await refusal(share({ ...other, requestId: "third" }))).toMatchObject({
        reason: "CONTEXT_ID_TAKEN",
      });
      const lookup = await bench.contexts.requestContext(
        { name: { case: "externalId", value: "mine" } },
        HER,
      );
      expect(lookup.context?.id).toBe(id);
    },
  );

  test("is JSON within the limits, and its readers exist", async () => {
    expect(await refusal(share({ envelope: { data: json("x").slice(1) } }))).toMatchObject({
      fields: ["envelope.data"],
    });
    expect(await refusal(share({ envelope: { ttlS: 31 * 86_400 } }))).toMatchObject({
      fields: ["envelope.ttl_s"],
    });
    expect(await refusal(share({ readers: ["nobody"] }))).toMatchObject({ reason: "AGENT_NOT_FOUND" });
  });
});

describe("a context that may not be persisted", () => {
  const permissions = { forward: true, derive: true, persist: false };

  test("never reaches the disk, with or without a task that carries it, and ends with the process", async () => {
    const id = await share({ permissions });
    const taskId = await delegate([id]);
    await bench.tasks.cancelTask({ taskId }, HER);
    await delegate([id]);
    const files = () =>
      readdirSync(bench.dataDir).map((file) => readFileSync(join(bench.dataDir, file), "latin1"));
    expect(files().join("")).not.toContain("between us");
    await bench.reopen();
    expect(files().join("")).not.toContain("between us");
    expect(await refusal(request(id))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
    expect(await refusal(request(id, OTHER))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
  });

  test("is refused when the memory is full, until other contexts end", async () => {
    const large = { permissions, envelope: { data: json("x".repeat(700)) } };
    const first = await share(large);
    expect(await refusal(share(large))).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "context_memory.bytes", max: "1000" },
    });
    await revoke(first);
    await share(large);
    await bench.pass(60_000);
    expect(heldBytesOf(bench)).toBe(0);
  });
});

describe("a context that a task carries", () => {
  test("reaches the delegate, which can read it from then on", async () => {
    const id = await share({});
    expect(await refusal(request(id, ME))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
    await delegate([id]);
    const { contexts } = await take(bench, "bob");
    expect(contexts.map(({ envelope }) => envelope?.data)).toEqual([SECRET]);
    expect((await request(id, ME)).context?.readerAgentIds).toEqual(["bob"]);
  });

  describe.each([true, false])("and that expires or is revoked (persist: %s)", (persist) => {
    const permissions = { ...ALL, persist };
    const endOf = async (taskId: string) => {
      const { task } = await bench.tasks.getTask({ taskId }, HER);
      return [task?.status, task?.failure?.reason];
    };
    const EXPIRED = [TaskStatus.EXPIRED, "CONTEXT_EXPIRED"];

    test("ends the task at its expiry, if no worker has the task", async () => {
      const taskId = await delegate([await share({ permissions })]);
      await bench.pass(59_999);
      expect(await endOf(taskId)).toEqual([TaskStatus.PENDING, undefined]);
      await bench.pass(1);
      expect(await endOf(taskId)).toEqual(EXPIRED);
    });

    test("does not affect a task that a worker has", async () => {
      const taskId = await delegate([await share({ permissions })]);
      const { lease } = await take(bench, "bob");
      await bench.workers.startAssignment({ lease }, ME);
      await bench.pass(10_000);
      await bench.workers.heartbeatAssignment({ lease }, ME);
      await bench.pass(20_000);
      await bench.workers.heartbeatAssignment({ lease }, ME);
      await bench.pass(29_000);
      await bench.workers.heartbeatAssignment({ lease }, ME);
      await bench.pass(2_000);
      expect((await endOf(taskId))[0]).toBe(TaskStatus.RUNNING);
    });

    test.each(["expired", "revoked"])("ends the task before another worker gets it (%s)", async (how) => {
      const id = await share({ permissions });
      const taskId = await delegate([id]);
      const { lease } = await take(bench, "bob");
      if (how === "revoked") await revoke(id);
      await bench.workers.releaseAssignment({ lease }, ME);
      if (how === "expired") await bench.pass(60_000);
      await expect(take(bench, "bob")).rejects.toThrow("nothing to do");
      expect(await endOf(taskId)).toEqual(EXPIRED);
    });

    test("ends the task instead of a repeated assignment after a lost answer", async () => {
      const id = await share({ permissions });
      const taskId = await delegate([id]);
      const poll = () =>
        bench.workers.takeAssignments(
          { agentId: "bob", worker: "w", capacity: 2, wait: { seconds: 0n } },
          ME,
        );
      expect((await poll()).assignments).toHaveLength(1);
      expect((await poll()).assignments).toHaveLength(1);
      await revoke(id);
      expect((await poll()).assignments).toEqual([]);
      expect(await endOf(taskId)).toEqual(EXPIRED);
    });

    test("in memory alone ends the waiting task when the process ends", async () => {
      const taskId = await delegate([await share({ permissions })]);
      await bench.reopen();
      expect(await endOf(taskId)).toEqual(persist ? [TaskStatus.PENDING, undefined] : EXPIRED);
    });
  });

  test.each([true, false])("is the input if the draft says so (persist: %s)", async (persist) => {
    const id = await share({ permissions: { forward: false, derive: false, persist } });
    const draft = { agentId: "bob", description: "read", contextIds: [id], inputFromContext: true };
    const { task } = await bench.tasks.createTask({ requestId: "from context", draft }, HER);
    const read = async (options: object) =>
      (await bench.tasks.getTask({ taskId: task?.id ?? "" }, options)).task?.input;
    const input = fromJson(ValueSchema, { note: "between us" });
    expect((await take(bench, "bob")).task?.input).toEqual(input);
    expect([await read(HER), await read(ME)]).toEqual([input, input]);
    await bench.pass(60_000);
    expect([await read(HER), await read(ME)]).toEqual([undefined, undefined]);
  });

  test("cannot be the input if the draft has another input, or no context", async () => {
    const draft = { agentId: "bob", description: "read", inputFromContext: true };
    const bring = (more: object) =>
      bench.tasks.createTask({ requestId: `request ${++count}`, draft: { ...draft, ...more } }, HER);
    expect(await refusal(bring({}))).toMatchObject({ fields: ["draft.input_from_context"] });
    const both = { contextIds: [await share({})], input: fromJson(ValueSchema, 1) };
    expect(await refusal(bring(both))).toMatchObject({ fields: ["draft.input"] });
  });

  test.each([true, false])(
    "is carried by a child task only if it may be forwarded (forward: %s)",
    async (forward) => {
      const id = await share({ permissions: { ...ALL, forward } });
      const parentTaskId = await delegate([id]);
      const part = delegate([id], ME, { agentId: "carol", parentTaskId });
      if (!forward) {
        expect(await refusal(part)).toMatchObject({ reason: "CONTEXT_PERMISSION_DENIED" });
        expect(await refusal(request(id, OTHER))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
        return;
      }
      await part;
      expect((await take(bench, "carol")).contexts).toHaveLength(1);
    },
  );

  test("is refused unless the caller may read it", async () => {
    const id = await share({});
    expect(await refusal(delegate([id], ME))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
    expect(await refusal(delegate(["none"]))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
  });
});

describe("a context in the request that creates the task", () => {
  const envelope = (permissions = {}, more: Sharing["envelope"] = {}) => ({
    data: SECRET,
    ttlS: 60,
    permissions,
    ...more,
  });
  const bring = (
    contexts: ReturnType<typeof envelope>[],
    more: object = {},
    requestId = `request ${++count}`,
  ) =>
    bench.tasks.createTask(
      { requestId, draft: { agentId: "bob", description: "read", contexts, ...more } },
      HER,
    );

  test("reaches the delegate after the named contexts, and stays off the disk unless it may be persisted", async () => {
    const first = await share({ readers: ["carol"] });
    await bring([envelope({ persist: true }, { data: json(2) }), envelope({}, { data: SECRET })], {
      contextIds: [first],
    });
    const { contexts } = await take(bench, "bob");
    expect(contexts.map(({ envelope: carried }) => carried?.data)).toEqual([SECRET, json(2), SECRET]);
    for (const { id, owner, readerAgentIds } of contexts.slice(1)) {
      expect({ owner, readerAgentIds }).toEqual({ owner: ALICE, readerAgentIds: ["bob"] });
      await request(id, ME);
      expect(await refusal(request(id, OTHER))).toMatchObject({ reason: "CONTEXT_NOT_FOUND" });
    }
  });

  test("is not on the disk if it may not be persisted", async () => {
    await bring([envelope({ forward: true })]);
    await bench.reopen();
    const files = readdirSync(bench.dataDir).map((file) => readFileSync(join(bench.dataDir, file), "latin1"));
    expect(files.join("")).not.toContain("between us");
  });

  test.each([true, false])(
    "is part of the request that a request id identifies (persist: %s)",
    async (persist) => {
      const [same, other] = [envelope({ persist }), envelope({ persist }, { data: json("other") })];
      const { task } = await bring([same], {}, "once");
      expect((await bring([same], {}, "once")).task?.id).toBe(task?.id);
      expect(await refusal(bring([other], {}, "once"))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
      const heldBytes = heldBytesOf(bench);
      expect(heldBytes).toBe(persist ? 0 : SECRET.length);
      await bench.reopen();
      expect((await bring([same], {}, "once")).task?.id).toBe(task?.id);
    },
  );

  test("is the existing context if the external id and the fields are equal, and is refused otherwise", async () => {
    const id = await share({ permissions: { forward: true }, readers: ["carol"], envelope: { id: "mine" } });
    await bring([envelope({ forward: true }, { id: "mine" })]);
    expect((await take(bench, "bob")).contexts.map((context) => context.id)).toEqual([id]);
    expect(await refusal(bring([envelope({}, { id: "mine" })]))).toMatchObject({
      reason: "CONTEXT_ID_TAKEN",
    });
  });

  test.each<[string, () => Promise<unknown>, object]>([
    [
      "is JSON",
      () => bring([envelope(), envelope({}, { data: SECRET.slice(1) })]),
      { fields: ["draft.contexts[1].data"] },
    ],
    [
      "has a time",
      () => bring([envelope({}, { ttlS: 31 * 86_400 })]),
      { fields: ["draft.contexts[0].ttl_s"] },
    ],
    [
      "is within its scope",
      () => bring([envelope({}, { scope: { capabilities: ["shout"] } })]),
      { reason: "CONTEXT_PERMISSION_DENIED" },
    ],
    [
      "is one of at most the maximum number",
      () => bring(Array(4).fill(envelope()), { contextIds: ["another"] }),
      { reason: "LIMIT_EXCEEDED", metadata: { limit: "draft.contexts", max: "4" } },
    ],
    [
      "is within the size limit with the others",
      () => bring(Array(2).fill(envelope({ persist: true }, { data: json("x".repeat(600_000)) }))),
      { reason: "LIMIT_EXCEEDED", metadata: { limit: "draft.context_ids.bytes" } },
    ],
    [
      "has room in the memory, with all the others",
      () => bring(Array(2).fill(envelope({}, { data: json("x".repeat(600)) }))),
      { reason: "LIMIT_EXCEEDED", metadata: { limit: "context_memory.bytes" } },
    ],
  ])("%s, or no task is created", async (_name, call, expected) => {
    expect(await refusal(call())).toMatchObject(expected);
    expect(heldBytesOf(bench)).toBe(0);
    expect((await bench.tasks.listTasks({}, HER)).tasks).toEqual([]);
  });
});

describe("a derived context", () => {
  test("is refused if its source may not be derived", async () => {
    const source = await share({ permissions: { ...ALL, derive: false }, readers: ["bob"] });
    expect(await refusal(share({ from: [source] }, ME))).toMatchObject({
      reason: "CONTEXT_PERMISSION_DENIED",
    });
  });

  test.each<[string, Sharing, string]>([
    ["may not be forwarded further", { permissions: { forward: true } }, "envelope.permissions.forward"],
    [
      "may not be persisted if its source may not",
      { permissions: { persist: true } },
      "envelope.permissions.persist",
    ],
    ["expires no later", { permissions: {}, envelope: { ttlS: 61 } }, "envelope.ttl_s"],
    [
      "has no further capabilities in its scope",
      { permissions: {}, envelope: { ttlS: 9 } },
      "envelope.scope",
    ],
  ])("%s", async (_name, makeRequest, field) => {
    const source = await share({
      permissions: { derive: true },
      readers: ["bob"],
      envelope: { scope: { capabilities: ["shout"] } },
    });
    expect(await refusal(share({ ...makeRequest, from: [source] }, ME))).toMatchObject({ fields: [field] });
    const narrower = { ttlS: 9, scope: { capabilities: ["shout"] } };
    await share({ permissions: { derive: true }, from: [source], envelope: narrower }, ME);
  });

  test.each([
    [true, true],
    [true, false],
    [false, false],
  ])(
    "is revoked with its source, also if a child task carries it (its source persists: %s, it persists: %s)",
    async (sourcePersists, persists) => {
      const source = await share({ permissions: { ...ALL, persist: sourcePersists }, readers: ["bob"] });
      const permissions = { ...ALL, persist: persists };
      const derived = await share({ permissions, from: [source], envelope: { ttlS: 50 } }, ME);
      const parentTaskId = await delegate([source]);
      await delegate([derived], ME, { agentId: "carol", parentTaskId });
      const again = await share({ permissions, from: [derived], envelope: { ttlS: 40 } }, OTHER);
      await request(again, OTHER);
      await revoke(source);
      for (const [id, options] of [
        [derived, ME],
        [derived, OTHER],
        [again, OTHER],
      ] as const) {
        expect(await refusal(request(id, options))).toMatchObject({ reason: "CONTEXT_EXPIRED" });
      }
      await expect(take(bench, "carol")).rejects.toThrow("nothing to do");
      expect(heldBytesOf(bench)).toBe(0);
    },
  );
});
