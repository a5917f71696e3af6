import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import {
  AuditService,
  type RecordAuditDecisionsRequest,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { ManualClock } from "@depute/core";
import { openStore, type Store } from "@depute/store";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { CurrentCall } from "../call-origin.ts";
import { createLogger } from "../log.ts";
import { AuditTrail, type TrailDecision } from "./audit-trail.ts";
import { countBatches, migrations } from "./outbox-rows.ts";

let store: Store;
let clock: ManualClock;
let received: RecordAuditDecisionsRequest[];
let refuses: ConnectError | undefined;
beforeEach(async () => {
  store = await openStore({ memory: true, migrations, onError: fail });
  clock = new ManualClock();
  received = [];
  refuses = undefined;
});
afterEach(() => store.close());

function fail(error: unknown): never {
  throw error;
}

const tokens = createRouterTransport(({ rpc }) => {
  rpc(AuditService.method.recordAuditDecisions, (request) => {
    received.push(request);
    if (refuses !== undefined) throw refuses;
    return {};
  });
});
/** Opens a trail on the test's store. The store stays open when the trail closes. */
function open(): AuditTrail {
  const shared: Store = {
    ...store,
    read: store.read.bind(store),
    write: store.write.bind(store),
    close: async () => {},
  };
  const log = createLogger({ level: "silent", name: "test" });
  return new AuditTrail({ source: "tasks", store: shared, tokens, clock, timers: clock, log });
}
const call: CurrentCall = {
  credential: "secret",
  ...{ caller: "c", organization: "", address: "10.0.0.1", wire: "grpc" },
  ...{ onBehalfOf: "", requestId: "r-1", traceId: "", rpc: "depute.tasks.v1.TaskService/CreateTask" },
};
const decision = (n: number): TrailDecision => ({
  ...{ kind: "call", call, resource: `tasks/${n}`, decision: "allowed", reason: "", blocks: ["b"] },
});
const resources = () => received.flatMap(({ decisions }) => decisions.map(({ resource }) => resource));
const undelivered = () => store.read(countBatches);

it("delivers decisions in batches of at most 100, and deletes acknowledged ones", async () => {
  const trail = open();
  await trail.start();
  for (let n = 0; n < 250; n++) trail.add(decision(n));
  await vi.waitFor(() => {
    clock.advance(250);
    expect(resources()).toHaveLength(250);
  });
  expect(Math.max(...received.map(({ decisions }) => decisions.length))).toBe(100);
  expect(new Set(received.map(({ batchId }) => batchId)).size).toBe(received.length);
  expect(new Set(resources()).size).toBe(250);
  await vi.waitFor(async () => expect(await undelivered()).toBe(0));
  await trail.close();
});

it("keeps decisions while the log is unavailable, and repeats them with the same id", async () => {
  refuses = new ConnectError("down", Code.Unavailable);
  const before = open();
  await before.start();
  before.add(decision(1));
  await vi.waitFor(() => {
    clock.advance(1000);
    expect(received.length).toBeGreaterThan(1);
  });
  expect(new Set(received.map(({ batchId }) => batchId)).size).toBe(1);
  await before.close();
  expect(await undelivered()).toBe(1);

  refuses = undefined;
  received = [];
  const after = open();
  await after.start();
  await vi.waitFor(async () => {
    clock.advance(1);
    expect(await undelivered()).toBe(0);
  });
  expect(resources()).toEqual(["tasks/1"]);
  await after.close();
});

it("refuses decisions when too many wait for the log", async () => {
  await store.write(async (tx) => {
    for (let n = 0; n < 10_000; n++)
      await tx.run("INSERT INTO batches (id, create_ms, request) VALUES (?, ?, ?)", [
        `b-${n}`,
        n,
        new Uint8Array(),
      ]);
  });
  const trail = open();
  await trail.start();
  expect(() => trail.assertRoom()).toThrow("the audit log does not accept decisions now");
  await trail.close();
});
