import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { CompleteParamsSchema } from "@depute/contracts/delegateos/v0/delegateos_jsonrpc_pb";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { createRevocation, type Keypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { refusal } from "@depute/service/testing";
import { decodeValid } from "@depute/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Delegated, type DelegateosScene, delegateosScene } from "./delegateos-scene.ts";
import { call, error, notification, result } from "./platform.ts";

const { ACTIVE, COMPLETED, FAILED, REVOKED } = DelegationStatus;
const UNTOUCHED = { delegation: ACTIVE, task: TaskStatus.PENDING, isStored: false };
const WORDS: Record<string, DelegationStatus> = { active: ACTIVE, completed: COMPLETED, failed: FAILED };

let scene: DelegateosScene;
beforeAll(async () => {
  scene = await delegateosScene();
});
afterAll(() => scene.platform.stop());

const post = (params: object) => scene.platform.post("/delegateos", call("delegateos/complete", params));

/**
 * The wires on which a caller can send a completion. Each function returns the delegation's state after the
 * completion.
 */
const DOORS = {
  "JSON-RPC": async (params: object) => WORDS[(await result(post(params))).status],
  async gRPC(params: object) {
    const { result: done } = await scene.platform.clients.delegateos.complete({
      parameters: messageOf(params),
    });
    return done?.status;
  },
};
const complete = DOORS["JSON-RPC"];
const refused = (params: object) => error(post(params));

function messageOf(params: object) {
  const read = decodeValid(CompleteParamsSchema, params as never);
  if (!read.ok) throw new Error(read.error.message);
  return read.message;
}

describe.each(["JSON-RPC", "gRPC"] as const)("a completion by the delegatee over %s", (door) => {
  const by = DOORS[door];

  test("ends the delegation and the task that no worker had taken", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated);
    expect(await by(params)).toBe(COMPLETED);
    expect(await scene.state(delegated, params)).toEqual({
      ...{ delegation: COMPLETED, task: TaskStatus.COMPLETED, isStored: true },
    });
    const { delegationId } = delegated;
    const { delegation: record } = await scene.platform.clients.delegations.getDelegation({ delegationId });
    expect(record?.attestationId).toBe(params.attestation.id);
    const name = { externalId: delegationId };
    const { task } = await scene.platform.clients.tasks.getTask(name);
    expect(task).toMatchObject({ attestationId: params.attestation.id, usage: { costMicrocents: 500n } });
    expect(task?.output?.full).toEqual(fromJson(ValueSchema, { count: 3 }));
    expect(task?.verification).toMatchObject({ method: "schema_match", passed: true });
  });

  test("is repeated without effect", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated);
    await by(params);
    const before = await scene.state(delegated, params);
    expect(await by(params)).toBe(COMPLETED);
    expect(await scene.state(delegated, params)).toEqual(before);
  });

  test("of a failure ends both as failed", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated, { result: { success: false, output: undefined } });
    expect(await by(params)).toBe(FAILED);
    expect(await scene.state(delegated, params)).toEqual({
      ...{ delegation: FAILED, task: TaskStatus.FAILED, isStored: true },
    });
    expect(await by(params)).toBe(FAILED);
  });

  test("ends a delegation that has no task", async () => {
    const delegated = await scene.withoutTask();
    const params = scene.attested(delegated);
    expect(await by(params)).toBe(COMPLETED);
    expect(await scene.state(delegated, params)).toMatchObject({ delegation: COMPLETED, isStored: true });
  });
});

describe("a completion", () => {
  test("as a notification does the same, without an answer", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated);
    const response = await scene.platform.post("/delegateos", notification("delegateos/complete", params));
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(await scene.state(delegated, params)).toMatchObject({ delegation: COMPLETED, isStored: true });
  });

  test("as a notification that is refused stores nothing", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated, { by: scene.stranger });
    const response = await scene.platform.post("/delegateos", notification("delegateos/complete", params));
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
  });

  test("by the delegatee of a chain that was attenuated elsewhere ends only the last delegation", async () => {
    const delegated = await scene.handedOver(scene.below);
    const params = scene.attested(delegated, { by: scene.below });
    expect(await complete(params)).toBe(COMPLETED);
    const { delegations } = await scene.platform.clients.delegations.getDelegationChain({
      delegationId: delegated.delegationId,
    });
    expect(delegations.map(({ status }) => status)).toEqual([ACTIVE, COMPLETED]);
  });

  test("with only the hash of its output has the output beside it", async () => {
    const delegated = await scene.handedOver();
    const output = { count: 3 };
    const outputHash = Buffer.from(engine.blake2b256(Buffer.from(JSON.stringify(output)))).toString(
      "base64url",
    );
    const params = scene.attested(delegated, { result: { output: undefined, outputHash } });
    expect(await refused(params)).toMatchObject({ data: { reason: "VERIFICATION_FAILED" } });
    expect(await refused({ ...params, output: { count: 4 } })).toMatchObject({
      data: { reason: "VERIFICATION_FAILED" },
    });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
    expect(await complete({ ...params, output })).toBe(COMPLETED);
  });

  test("of one delegation in many concurrent calls counts once", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated);
    const answers = await Promise.all(Array.from({ length: 8 }, () => complete(params)));
    expect(new Set(answers)).toEqual(new Set([COMPLETED]));
    const { id: taskId } = await scene.taskOf(delegated);
    const kinds: string[] = [];
    for await (const { taskEvent: event } of scene.platform.clients.tasks.watchTask({ taskId })) {
      kinds.push(event?.payload.case ?? "");
    }
    expect(kinds).toEqual(["created", "completed"]);
  });

  test("by contradicting concurrent attestations has one winner", async () => {
    const delegated = await scene.handedOver();
    const claims = Array.from({ length: 6 }, (_, n) =>
      scene.attested(
        delegated,
        n % 2 === 0 ? { result: { output: { count: n } } } : { result: { success: false } },
      ),
    );
    const answers = await Promise.all(
      claims.map((params) => complete(params).catch((thrown: Error) => thrown.message)),
    );
    const winners = claims.filter((_, n) => answers[n] === COMPLETED || answers[n] === FAILED);
    expect(winners).toHaveLength(1);
    for (const params of claims) {
      expect((await scene.state(delegated, params)).isStored).toBe(params === winners[0]);
    }
  });

  test("removes the task from the worker that holds it", async () => {
    const delegated = await scene.handedOver();
    const { workers } = scene.platform.clients;
    const { assignments } = await workers.takeAssignments({ agentId: "worker", worker: "w", capacity: 100 });
    const { id: taskId } = await scene.taskOf(delegated);
    const lease = assignments.find(({ task }) => task?.id === taskId)?.lease;
    if (lease === undefined) throw new Error("the task was not dispatched");
    await workers.startAssignment({ lease });
    expect(await complete(scene.attested(delegated))).toBe(COMPLETED);
    const late = workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, { count: 9 }) } });
    expect(await refusal(late)).toMatchObject({ reason: "LEASE_LOST" });
  });
});

describe("refused without a change is", () => {
  const DENIED = { code: -32001, message: "DCT verification failed" };

  test("a stranger's attestation, as if the delegation did not exist", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated, { by: scene.stranger });
    const answer = await refused(params);
    expect(answer).toMatchObject({ ...DENIED, data: { type: "invalid_signature" } });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
    const never = scene.attested({ ...delegated, delegationId: "del_0123456789ab" }, { by: scene.stranger });
    expect(await refused(never)).toEqual(answer);
  });

  test.each([
    ["the delegator", () => scene.delegator],
    ["the delegatee of a block above", () => scene.worker],
  ])("an attestation by %s", async (_, by) => {
    const delegated = await scene.handedOver(scene.below);
    const params = scene.attested(delegated, { by: by() });
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "invalid_signature" } });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
  });

  test("an unknown delegation", async () => {
    const { contract } = await scene.handedOver();
    const params = scene.attested({ contract, dct: "", delegationId: "del_fedcba987654", blocks: [] });
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "invalid_signature" } });
    await expect(
      scene.platform.clients.attestations.getAttestation({ attestationId: params.attestation.id }),
    ).rejects.toThrow();
  });

  test("a second attestation, whether it agrees or contradicts", async () => {
    const delegated = await scene.handedOver();
    await complete(scene.attested(delegated));
    for (const claim of [{ result: { output: { count: 4 } } }, { result: { success: false } }, {}]) {
      const params = scene.attested(delegated, claim);
      expect(await refused(params)).toMatchObject({ data: { reason: "DELEGATION_STATE_CONFLICT" } });
      expect(await scene.state(delegated, params)).toEqual({
        ...{ delegation: COMPLETED, task: TaskStatus.COMPLETED, isStored: false },
      });
    }
  });

  test.each(["block", "chain"] as const)("a delegation whose block is revoked by %s", async (scope) => {
    const delegated = await scene.handedOver(scene.below);
    await revoke(delegated, 1, scope, scene.worker);
    const params = scene.attested(delegated, { by: scene.below });
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "revoked" } });
    expect(await scene.state(delegated, params)).toMatchObject({ delegation: REVOKED, isStored: false });
  });

  test.each(["block", "chain"] as const)("one below a block that is revoked by %s", async (scope) => {
    const delegated = await scene.handedOver(scene.below);
    await revoke(delegated, 0, scope, scene.worker);
    const params = scene.attested(delegated, { by: scene.below });
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "revoked" } });
    expect((await scene.state(delegated, params)).isStored).toBe(false);
  });

  async function revoke({ blocks, dct }: Delegated, level: number, scope: "block" | "chain", by: Keypair) {
    const revocation = createRevocation(engine, blocks[level] ?? "", scope, by);
    await result(scene.platform.post("/delegateos", call("delegateos/revoke", { revocation, dct })));
  }

  test("an attestation of another contract", async () => {
    const delegated = await scene.handedOver();
    const other = await scene.handedOver();
    const params = scene.attested({ ...delegated, contract: other.contract });
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "contract_mismatch" } });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
  });

  test("an attestation of a contract that is not stored", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested({ ...delegated, contract: { id: "ct_123456789abc" } });
    expect(await refused(params)).toMatchObject({ code: -32053, data: { reason: "CONTRACT_NOT_FOUND" } });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
  });

  test.each([
    ["an output outside the contract", { result: { output: { nothing: 1 } } }, /output/],
    ["a cost above the budget", { result: { costMicrocents: 1001 } }, /cost/],
    ["no output at all", { result: { output: undefined } }, /output/],
    ["a failure that cost too much", { result: { success: false, costMicrocents: 1001 } }, /cost/],
  ])("%s, which the delegatee can correct", async (_, claim, details) => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated, claim);
    expect(await refused(params)).toMatchObject({
      data: { reason: "VERIFICATION_FAILED", detail: expect.stringMatching(details) },
    });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
    expect(await complete(scene.attested(delegated))).toBe(COMPLETED);
  });

  test("a statement about delegated work instead of a completion", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated, { about: { type: "delegation_verification" } });
    expect(await refused(params)).toMatchObject({
      code: -32602,
      data: { violations: [{ path: "/attestation/type" }] },
    });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
  });

  test("an attestation of another delegation, or one that its principal did not sign", async () => {
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated);
    expect(await refused({ ...params, delegationId: "del_123456789abc" })).toMatchObject({
      code: -32602,
      data: { violations: [{ path: "/attestation/delegationId" }] },
    });
    const changed = { ...params.attestation, createdAt: "2026-01-01T00:00:00.000Z" };
    expect(await refused({ ...params, attestation: changed })).toMatchObject({
      code: -32602,
      data: { reason: "SIGNATURE_INVALID" },
    });
    expect(await scene.state(delegated, params)).toEqual(UNTOUCHED);
  });

  test("an id of another attestation", async () => {
    const first = await scene.handedOver();
    const takenAttestation = scene.attested(first);
    await complete(takenAttestation);
    const delegated = await scene.handedOver();
    const params = scene.attested(delegated, { about: { id: takenAttestation.attestation.id } });
    expect(await refused(params)).toMatchObject({ data: { reason: "ATTESTATION_EXISTS" } });
    expect(await scene.state(delegated, params)).toMatchObject({
      delegation: ACTIVE,
      task: TaskStatus.PENDING,
    });
  });

  test("a completion of a task that was cancelled", async () => {
    const delegated = await scene.handedOver();
    const { id: taskId } = await scene.taskOf(delegated);
    await scene.platform.clients.tasks.cancelTask({ taskId, reason: "no" });
    const params = scene.attested(delegated);
    const { data } = await refused(params);
    expect(["TASK_STATE_CONFLICT", "DELEGATION_STATE_CONFLICT"]).toContain(data.reason);
    expect((await scene.state(delegated, params)).isStored).toBe(false);
  });

  test("an attestation by a revoked key", async () => {
    const delegated = await scene.handedOver(scene.below);
    await scene.platform.clients.revocations.revokeKeyAsRoot({ key: scene.below.principal.id });
    const params = scene.attested(delegated, { by: scene.below });
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "revoked" } });
    expect((await scene.state(delegated, params)).isStored).toBe(false);
  });

  test("an expired delegation", async () => {
    const delegated = await scene.withoutTask();
    scene.advance(3_601_000);
    const params = scene.attested(delegated);
    expect(await refused(params)).toMatchObject({ ...DENIED, data: { type: "expired" } });
    expect(await scene.state(delegated, params)).toMatchObject({ delegation: ACTIVE, isStored: false });
  });
});
