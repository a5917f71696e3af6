import { AttestationType } from "@depute/contracts/delegateos/v0/attestation_pb";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { asCaller, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB, CONTRACT, Fakes } from "../../testing/fakes.ts";
import { firstEnded } from "../store/delegation-rows.ts";

const { COMPLETED, FAILED } = DelegationStatus;

let bench: Bench;
let fakes: Fakes;
beforeEach(async () => {
  fakes = new Fakes();
  fakes.tokens.set("one", { delegatee: BOB, block: "block-1" });
  fakes.tokens.set("two", { delegatee: BOB, block: "block-2" });
  bench = await openBench(fakes);
});
afterEach(() => bench.close());

let count = 0;
async function task(workerToken: string): Promise<string> {
  const draft = { agentId: "bob", contractId: CONTRACT, workerToken };
  const { task: delegatedTask } = await bench.tasks.createTask(
    { requestId: `r${++count}`, draft },
    asCaller(ALICE),
  );
  return delegatedTask?.id ?? "";
}
const cancel = (taskId: string) => bench.tasks.cancelTask({ taskId }, asCaller(ALICE));
const untold = () => bench.runtime.context.engine.store.read((tx) => firstEnded(tx, 1000));

/** Advances the fake clock until the check passes. The outbox waits by this clock, so the test takes no real time. */
const eventually = (check: () => Promise<void> | void) =>
  vi.waitFor(async () => {
    await bench.pass(250);
    await check();
  });
const sendEnds = (...ends: [string, DelegationStatus, string?][]) =>
  eventually(async () => {
    expect(fakes.finished).toEqual(
      ends.map(([revocationId, status, attestationId = ""]) => ({ revocationId, status, attestationId })),
    );
    expect(await untold()).toEqual([]);
  });

test("a completed task completes its delegation, with the attestation", async () => {
  await task("one");
  const lease = await begin(bench, "bob", asCaller(BOB));
  const attestationId = "att_0123456789ab";
  fakes.attestations.set(attestationId, {
    principal: BOB,
    contractId: CONTRACT,
    delegationId: "del_0123456789ab",
    type: AttestationType.COMPLETION,
    result: { success: true },
  });
  const output = { full: { kind: { case: "boolValue", value: true } } } as const;
  await bench.workers.completeAssignment({ lease, output, attestationId }, asCaller(BOB));
  await sendEnds(["block-1", COMPLETED, attestationId]);
});

const endings: [string, TaskStatus, (taskId: string) => Promise<unknown>][] = [
  ["cancelled", TaskStatus.CANCELLED, cancel],
  ["revoked", TaskStatus.REVOKED, async () => fakes.revoke("block-1")],
  ["expired", TaskStatus.EXPIRED, () => bench.pass(3_600_000)],
  [
    "rejected",
    TaskStatus.REJECTED,
    async () => {
      const { lease } = await take(bench, "bob");
      await bench.workers.rejectAssignment(
        { lease, failure: { reason: "NO", message: "no" } },
        asCaller(BOB),
      );
    },
  ],
  [
    "failed",
    TaskStatus.FAILED,
    async () => {
      const lease = await begin(bench, "bob", asCaller(BOB));
      const failure = { reason: "BROKEN", message: "broken", retryable: false };
      await bench.workers.failAssignment({ lease, failure }, asCaller(BOB));
    },
  ],
];
test.each(endings)("a task that is %s fails its delegation", async (_name, status, end) => {
  const taskId = await task("one");
  await end(taskId);
  await sendEnds(["block-1", FAILED]);
  const { task: ended } = await bench.tasks.getTask({ taskId }, asCaller(ALICE));
  expect(ended?.status).toBe(status);
});

test("a task without a token reports no end of a delegation", async () => {
  const draft = { agentId: "bob" };
  const { task: createdTask } = await bench.tasks.createTask({ requestId: "n", draft }, asCaller(ALICE));
  await cancel(createdTask?.id ?? "");
  expect(await untold()).toEqual([]);
});

test("ends wait in their order while the tokens service is unavailable, also over a restart", async () => {
  const [first, second] = [await task("one"), await task("two")];
  fakes.away.add("tokens");
  await cancel(second);
  await bench.pass(60_000);
  await cancel(first);
  await bench.pass(60_000);
  expect(fakes.finished).toEqual([]);
  await bench.reopen();
  expect((await untold()).map(({ taskId }) => taskId)).toEqual([second, first]);
  fakes.away.clear();
  await eventually(() => bench.pass(30_000));
  await sendEnds(["block-2", FAILED], ["block-1", FAILED]);
});

test("more ends than one read returns are all reported", async () => {
  const ids: string[] = [];
  for (let index = 0; index < 120; index++) {
    fakes.tokens.set(`t${index}`, { delegatee: BOB, block: `b${index}` });
    ids.push(await task(`t${index}`));
  }
  fakes.away.add("tokens");
  for (const id of ids) await cancel(id);
  fakes.away.clear();
  await sendEnds(...ids.map((_id, index): [string, DelegationStatus] => [`b${index}`, FAILED]));
});

test("a delegation that is unknown or ended otherwise does not delay others", async () => {
  const [first, second] = [await task("one"), await task("two")];
  const reasons = [ErrorReason.DELEGATION_NOT_FOUND, ErrorReason.DELEGATION_STATE_CONFLICT];
  let calls = 0;
  fakes.onFinish = () => {
    const reason = reasons[calls++];
    if (reason !== undefined) throw DeputeError.received(reason, "no");
  };
  await cancel(first);
  await cancel(second);
  await sendEnds();
  expect(calls).toBe(2);
});

test("a delegation with several tasks ends with the last of them", async () => {
  const [first, second] = [await task("one"), await task("one")];
  await cancel(first);
  expect(await untold()).toEqual([]);
  await cancel(second);
  await sendEnds(["block-1", FAILED]);
});
