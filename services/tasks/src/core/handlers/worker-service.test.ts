import { create, fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { AttestationResultSchema, AttestationType } from "@depute/contracts/delegateos/v0/attestation_pb";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type Assignment,
  type Lease,
  WorkerDirective,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { encodeBase64Url } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB, CONTRACT, type FakeAttestation } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { limits, T0 } from "../../testing/tasks.ts";
import { claim } from "../queue/claim.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.tokens.set("sound", { delegatee: BOB, block: "block-1" });
});
afterEach(() => bench.close());

const text = (value: JsonValue) => fromJson(ValueSchema, value);
const DONE = { full: text("HELLO") };
const ME = asCaller(BOB);

let count = 0;
/** Creates a task for Bob with Alice as the delegator. Returns the task's id. */
async function task(draft: MessageInitShape<typeof TaskDraftSchema> = {}): Promise<string> {
  const request = {
    requestId: `request ${++count}`,
    draft: { capabilityId: "shout", input: text("hello"), ...draft },
  };
  return (await bench.tasks.createTask(request, asCaller(ALICE))).task?.id ?? "";
}

/** Dispatches the oldest pending task to Bob. Returns its assignment. */
async function assigned(): Promise<Assignment & { lease: Lease }> {
  const stream = { agentId: "bob", worker: "w", capacity: 1, capabilityIds: [], holder: `stream ${++count}` };
  const [assignment] = await claim(
    bench.runtime.context.engine,
    stream,
    1,
    bench.runtime.context.contextMemory,
  );
  if (assignment?.lease === undefined) throw new Error("nothing to do");
  return { ...assignment, lease: assignment.lease };
}

/** Returns the lease of a task that a worker has begun. */
async function begun(draft: MessageInitShape<typeof TaskDraftSchema> = {}): Promise<Lease> {
  await task(draft);
  const { lease } = await assigned();
  await bench.workers.startAssignment({ lease }, ME);
  return lease;
}

const get = async (taskId: string) => (await bench.tasks.getTask({ taskId }, asCaller(ALICE))).task;
const statusOf = async (taskId: string) => (await get(taskId))?.status;

describe("an assignment", () => {
  test("contains the task with its input, the lease, and the heartbeat interval", async () => {
    const taskId = await task({ limits: limits({ heartbeat: 9000 }) });
    const assignment = await assigned();
    expect(assignment).toMatchObject({ lease: { taskId, epoch: 1n }, workerToken: "" });
    expect(assignment.task).toMatchObject({ status: TaskStatus.ACCEPTED, attempt: 1, input: text("hello") });
    expect(assignment.heartbeatInterval).toMatchObject({ seconds: 3n });
    expect(assignment.leaseExpireTime && timestampMs(assignment.leaseExpireTime)).toBe(T0 + 9000);
  });

  test("contains the worker's token", async () => {
    await task({ contractId: CONTRACT, workerToken: "sound" });
    expect((await assigned()).workerToken).toBe("sound");
  });

  test("cannot be used by another agent", async () => {
    await task();
    const { lease } = await assigned();
    const stranger = asCaller(`${"C".repeat(42)}I`);
    const failure = { reason: "BROKEN", message: "", retryable: false };
    const calls = [
      bench.workers.startAssignment({ lease }, stranger),
      bench.workers.heartbeatAssignment({ lease }, stranger),
      bench.workers.reportProgress({ lease, progress: {} }, stranger),
      bench.workers.reportPartial({ lease, output: text(1) }, stranger),
      bench.workers.completeAssignment({ lease, output: DONE }, stranger),
      bench.workers.failAssignment({ lease, failure }, stranger),
      bench.workers.rejectAssignment({ lease, failure }, stranger),
      bench.workers.releaseAssignment({ lease }, stranger),
      bench.workers.startAssignment({ lease }, asCaller(ALICE)),
      bench.workers.completeAssignment({ lease, output: DONE }, asCaller(ALICE)),
    ];
    for (const { reason } of await Promise.all(calls.map(refusal))) expect(reason).toBe("TASK_NOT_FOUND");
    expect(await statusOf(lease.taskId)).toBe(TaskStatus.ACCEPTED);
  });
});

describe("calls that extend a lease", () => {
  const heartbeat = 5000;
  test.each([
    ["a heartbeat", (lease: Lease) => bench.workers.heartbeatAssignment({ lease }, ME)],
    ["progress", (lease: Lease) => bench.workers.reportProgress({ lease, progress: { processed: 1 } }, ME)],
    ["a partial result", (lease: Lease) => bench.workers.reportPartial({ lease, output: text("HE") }, ME)],
    ["a repeated start", (lease: Lease) => bench.workers.startAssignment({ lease }, ME)],
  ])("%s extends the lease", async (_name, sign) => {
    const lease = await begun({ limits: limits({ heartbeat }) });
    await bench.pass(heartbeat - 1);
    await sign(lease);
    await bench.pass(heartbeat - 1);
    expect(await statusOf(lease.taskId)).toBe(TaskStatus.RUNNING);
    await bench.pass(1);
    expect(await statusOf(lease.taskId)).toBe(TaskStatus.PENDING);
  });

  test("are refused after its end, even before the timer has run", async () => {
    const lease = await begun({ limits: limits({ heartbeat }) });
    bench.clock.set(T0 + heartbeat);
    const late = bench.workers.reportProgress({ lease, progress: { processed: 1 } }, ME);
    expect(await refusal(late)).toMatchObject({
      reason: "LEASE_LOST",
      metadata: { task: lease.taskId, epoch: "1" },
    });
  });

  test("return the directive to stop, with its reason", async () => {
    const lease = await begun();
    expect((await bench.workers.heartbeatAssignment({ lease }, ME)).directive).toBe(WorkerDirective.CONTINUE);
    await bench.tasks.cancelTask({ taskId: lease.taskId, reason: "enough" }, asCaller(ALICE));
    expect(await bench.workers.heartbeatAssignment({ lease }, ME)).toMatchObject({
      directive: WorkerDirective.STOP,
      reason: "CANCELLED: enough",
    });
    const more = bench.workers.reportProgress({ lease, progress: { processed: 1 } }, ME);
    expect((await refusal(more)).reason).toBe("LEASE_LOST");
  });

  test("the task of a silent worker gets another worker, and its last attempt fails", async () => {
    const taskId = await task({ limits: limits({ heartbeat }), retry: { maxAttempts: 2 } });
    await assigned();
    await bench.pass(heartbeat);
    const { lease } = await assigned();
    expect(lease).toMatchObject({ taskId, epoch: 2n });
    await bench.pass(heartbeat);
    expect(await get(taskId)).toMatchObject({
      status: TaskStatus.FAILED,
      attempt: 2,
      failure: { reason: "LEASE_LOST" },
    });
  });
});

describe("reports", () => {
  test("with one request id count once", async () => {
    const lease = await begun();
    const report = (processed: number) =>
      bench.workers.reportProgress({ lease, progress: { processed, total: 9 }, requestId: "r1" }, ME);
    expect((await report(3)).sequence).toBe(4n);
    expect((await report(3)).sequence).toBe(4n);
    expect(await refusal(report(4))).toMatchObject({
      reason: "REQUEST_ID_REUSED",
      metadata: { request_id: "r1" },
    });
    expect(await get(lease.taskId)).toMatchObject({ lastSequence: 4n, progress: { processed: 3, total: 9 } });
  });

  test("without a request id count each time", async () => {
    const lease = await begun();
    for (const sequence of [4n, 5n]) {
      expect((await bench.workers.reportPartial({ lease, output: text("HE") }, ME)).sequence).toBe(sequence);
    }
  });

  test("before the start, or beyond the size limit, are refused", async () => {
    await task();
    const { lease } = await assigned();
    const early = bench.workers.reportProgress({ lease, progress: {} }, ME);
    expect((await refusal(early)).reason).toBe("TASK_STATE_CONFLICT");
    await bench.workers.startAssignment({ lease }, ME);
    const large = bench.workers.reportPartial({ lease, output: text("x".repeat(256 * 1024)) }, ME);
    expect(await refusal(large)).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "output.bytes", max: "262144" },
    });
    expect((await get(lease.taskId))?.lastSequence).toBe(3n);
  });
});

describe("a completion", () => {
  const complete = (lease: Lease, output: { full?: ReturnType<typeof text> } = DONE) =>
    bench.workers.completeAssignment({ lease, output, usage: { tokensUsed: 7n } }, ME);

  test("ends the task with its result, and a repeated one gets the first answer", async () => {
    const lease = await begun();
    const first = await complete(lease);
    expect(first.task).toMatchObject({
      status: TaskStatus.COMPLETED,
      output: DONE,
      usage: { tokensUsed: 7n },
    });
    expect(await complete(lease, { full: text("OTHER") })).toEqual(first);
    expect(await get(lease.taskId)).toEqual(first.task);
  });

  test.each([
    ["no result", {}, "INVALID_REQUEST"],
    ["a result outside the schema", { full: text(7) }, "OUTPUT_SCHEMA_VIOLATION"],
    ["a result beyond the size limit", { full: text("x".repeat(1024 * 1024)) }, "LIMIT_EXCEEDED"],
  ])("with %s is refused, and the lease stays", async (_name, output, reason) => {
    const lease = await begun();
    expect((await refusal(complete(lease, output))).reason).toBe(reason);
    expect((await complete(lease)).task?.status).toBe(TaskStatus.COMPLETED);
  });

  test("under a contract that passes has the verification in the task", async () => {
    const lease = await begun({ contractId: CONTRACT });
    bench.fakes.verdict = { passed: true, details: "fits" };
    expect((await complete(lease)).task).toMatchObject({
      status: TaskStatus.COMPLETED,
      verification: { method: "schema_match", passed: true, details: "fits" },
    });
  });

  test.each([
    [{ passed: false, details: "too short" }, "too short"],
    ["timeout", "the check was stopped at its time limit"],
  ] as const)(
    "under a contract with the verdict %o fails the task without a retry",
    async (verdict, details) => {
      const lease = await begun({ contractId: CONTRACT });
      bench.fakes.verdict = verdict;
      const first = await complete(lease);
      expect(first.task).toMatchObject({
        status: TaskStatus.FAILED,
        failure: { reason: "VERIFICATION_FAILED", message: details, retryable: false },
        verification: { method: "schema_match", passed: false, details },
      });
      expect(first.task?.output).toBeUndefined();
      bench.fakes.verdict = { passed: true, details: "" };
      expect(await complete(lease)).toEqual(first);
    },
  );

  test("under a contract with a pending review is refused, and the lease stays", async () => {
    const lease = await begun({ contractId: CONTRACT });
    bench.fakes.verdict = "pending";
    expect(await refusal(complete(lease))).toMatchObject({
      reason: "REVIEW_PENDING",
      metadata: { review: "review" },
    });
    bench.fakes.verdict = { passed: true, details: "approved" };
    expect((await complete(lease)).task?.status).toBe(TaskStatus.COMPLETED);
  });

  test("whose lease ends during the check is refused", async () => {
    const lease = await begun({ contractId: CONTRACT });
    bench.fakes.onCheckOutput = () => bench.pass(30_000);
    expect((await refusal(complete(lease))).reason).toBe("LEASE_LOST");
    expect(await statusOf(lease.taskId)).toBe(TaskStatus.PENDING);
  });

  test("is refused while the verifier is unavailable, and succeeds afterwards", async () => {
    const lease = await begun({ contractId: CONTRACT });
    bench.fakes.away.add("verifier");
    expect((await refusal(complete(lease))).reason).toBe("DEPENDENCY_UNAVAILABLE");
    bench.fakes.away.clear();
    expect((await complete(lease)).task?.status).toBe(TaskStatus.COMPLETED);
  });
});

describe("an attestation of the result", () => {
  const id = "att_0123456789ab";
  const attestationOf = (result: MessageInitShape<typeof AttestationResultSchema> = {}) =>
    create(AttestationResultSchema, { success: true, output: DONE.full, ...result });
  const attestationTarget: FakeAttestation = {
    ...{ principal: BOB, contractId: CONTRACT, delegationId: "del_0123456789ab" },
    ...{ type: AttestationType.COMPLETION, result: attestationOf() },
  };
  const HELLO_HASH = encodeBase64Url(nativeEngine.blake2b256(Buffer.from('"HELLO"')));
  const complete = async (attestation: FakeAttestation | undefined) => {
    if (attestation !== undefined) bench.fakes.attestations.set(id, attestation);
    const lease = await begun({ contractId: CONTRACT, workerToken: "sound" });
    return bench.workers.completeAssignment({ lease, output: DONE, attestationId: id }, ME);
  };

  test("by the delegate, of this contract and delegation, is linked to the task", async () => {
    expect((await complete(attestationTarget)).task).toMatchObject({
      status: TaskStatus.COMPLETED,
      attestationId: id,
    });
  });

  test("may contain only the hash of its output", async () => {
    const { output: _, ...hashed } = attestationOf({ outputHash: HELLO_HASH });
    expect((await complete({ ...attestationTarget, result: hashed })).task?.status).toBe(
      TaskStatus.COMPLETED,
    );
  });

  test.each([
    ["that is not recorded", undefined, "ATTESTATION_NOT_FOUND"],
    ["by another principal", { ...attestationTarget, principal: ALICE }, "INVALID_REQUEST"],
    ["of another contract", { ...attestationTarget, contractId: "ct_ba9876543210" }, "INVALID_REQUEST"],
    ["of another delegation", { ...attestationTarget, delegationId: "del_ba9876543210" }, "INVALID_REQUEST"],
    [
      "of another type",
      { ...attestationTarget, type: AttestationType.DELEGATION_VERIFICATION },
      "INVALID_REQUEST",
    ],
    ["of a failure", { ...attestationTarget, result: attestationOf({ success: false }) }, "INVALID_REQUEST"],
    [
      "of another output",
      { ...attestationTarget, result: attestationOf({ output: text("BYE") }) },
      "INVALID_REQUEST",
    ],
    [
      "of another output's hash",
      { ...attestationTarget, result: attestationOf({ outputHash: "A".repeat(43) }) },
      "INVALID_REQUEST",
    ],
  ])("%s is refused, and the lease stays", async (_, attestation, reason) => {
    expect(await refusal(complete(attestation))).toMatchObject({ reason });
    const [only] = (await bench.tasks.listTasks({}, asCaller(ALICE))).tasks;
    expect(only?.status).toBe(TaskStatus.RUNNING);
  });
});

describe("a failed, rejected or released assignment", () => {
  const failing = (lease: Lease, retryable: boolean) =>
    bench.workers.failAssignment({ lease, failure: { reason: "BROKEN", message: "oh", retryable } }, ME);

  test("with a retryable failure puts the task back, once", async () => {
    const lease = await begun({ retry: { maxAttempts: 2 } });
    expect((await failing(lease, true)).task).toMatchObject({ status: TaskStatus.PENDING, attempt: 1 });
    expect((await failing(lease, true)).task).toMatchObject({ status: TaskStatus.PENDING, lastSequence: 4n });
    const { lease: second } = await assigned();
    expect((await failing(second, true)).task).toMatchObject({
      status: TaskStatus.FAILED,
      failure: { reason: "BROKEN", message: "oh" },
    });
  });

  test("with any other failure ends the task", async () => {
    const lease = await begun();
    expect((await failing(lease, false)).task?.status).toBe(TaskStatus.FAILED);
  });

  test("is rejected only before its start", async () => {
    await task();
    const { lease } = await assigned();
    const failure = { reason: "NOT_MINE", message: "", retryable: false };
    expect((await bench.workers.rejectAssignment({ lease, failure }, ME)).task).toMatchObject({
      status: TaskStatus.REJECTED,
      failure: { reason: "NOT_MINE" },
    });
    const running = await begun();
    const late = bench.workers.rejectAssignment({ lease: running, failure }, ME);
    expect(await refusal(late)).toMatchObject({
      reason: "TASK_STATE_CONFLICT",
      metadata: { from: "running", to: "rejected" },
    });
  });

  test("is released without the use of an attempt", async () => {
    const lease = await begun({ retry: { maxAttempts: 1 } });
    expect((await bench.workers.releaseAssignment({ lease }, ME)).task).toMatchObject({
      status: TaskStatus.PENDING,
      attempt: 0,
    });
    expect((await assigned()).lease.epoch).toBe(2n);
    expect((await refusal(bench.workers.heartbeatAssignment({ lease }, ME))).reason).toBe("LEASE_LOST");
  });
});

describe("a token that became invalid", () => {
  const draft = { contractId: CONTRACT, workerToken: "sound" };
  const deny = (denial: DenialType) =>
    bench.fakes.tokens.set("sound", { delegatee: BOB, block: "b", denial });

  test.each([
    ["revoked", DenialType.REVOKED],
    ["expired", DenialType.EXPIRED],
  ])("with the denial %s ends the task before it starts", async (denial, type) => {
    await task(draft);
    const { lease } = await assigned();
    deny(type);
    const start = bench.workers.startAssignment({ lease }, ME);
    expect(await refusal(start)).toMatchObject({ reason: "TOKEN_DENIED", metadata: { denial } });
    expect(await get(lease.taskId)).toMatchObject({
      status: TaskStatus.REVOKED,
      failure: { reason: "REVOKED" },
    });
  });

  test("ends the task before the result counts", async () => {
    const lease = await begun(draft);
    deny(DenialType.EXPIRED);
    const complete = bench.workers.completeAssignment({ lease, output: DONE }, ME);
    expect((await refusal(complete)).reason).toBe("TOKEN_DENIED");
    expect(await statusOf(lease.taskId)).toBe(TaskStatus.REVOKED);
    expect((await get(lease.taskId))?.output).toBeUndefined();
  });

  test("for a temporary reason only refuses the call", async () => {
    const lease = await begun(draft);
    deny(DenialType.REVOCATION_STATE_STALE);
    const complete = bench.workers.completeAssignment({ lease, output: DONE }, ME);
    expect((await refusal(complete)).reason).toBe("TOKEN_DENIED");
    expect(await statusOf(lease.taskId)).toBe(TaskStatus.RUNNING);
  });
});
