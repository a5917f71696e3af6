import { create } from "@bufbuild/protobuf";
import {
  ExecutionReceiptSchema,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { ApprovalState, SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { ManualClock } from "@depute/core";
import { createLogger } from "@depute/service";
import { openStore, type Store } from "@depute/store";
import { afterEach, expect, test } from "vitest";
import { findExecution, insertExecution } from "../store/execution-rows.ts";
import { EXECUTION_MIGRATIONS } from "../store/migrations.ts";
import { insertReceipt, readReceipts } from "../store/receipt-rows.ts";
import { ExecutionPurger } from "./purger.ts";

const DAY_MS = 86_400_000;
const clock = new ManualClock();
let store: Store;
afterEach(() => store.close());

async function entered(requestId: string, status: ExecutionStatus, ended = true, verifyBy?: number) {
  const nowMs = clock.now();
  const request = create(ExecutionRequestSchema, {
    requestId,
    idempotencyKey: requestId,
    buyerAgent: { agentId: "buyer", organizationId: "org:b" },
  });
  const isRejected = status === ExecutionStatus.REJECTED;
  await store.write(async (tx) => {
    await insertExecution(tx, {
      request,
      digest: "d",
      buyerPrincipal: "b",
      sellerPrincipal: "s",
      organization: "",
      authority: [],
      sellerOrganization: "org:s",
      taskId: isRejected ? "" : `task-${requestId}`,
      status,
      approval: ApprovalState.UNSPECIFIED,
      settlement: SettlementState.AUTHORIZED,
      limit: 1n,
      finalAmount: undefined,
      captureId: "",
      startBy: nowMs,
      deadline: nowMs,
      verifyBy,
      createMs: nowMs,
      endMs: ended ? nowMs : undefined,
      lastNumber: 1,
    });
    const receipt = create(ExecutionReceiptSchema, { receiptId: `receipt-${requestId}`, requestId });
    await insertReceipt(tx, requestId, { number: 1, receipt, settles: false });
  });
}

test("ended executions and rejected requests are kept for their retention, open executions for ever", async () => {
  store = await openStore({
    memory: true,
    migrations: EXECUTION_MIGRATIONS,
    onError: (error) => expect(error).toBe(0),
  });
  const log = createLogger({ level: "silent", name: "test" });
  const options = { store, clock, timers: clock, log };
  // This setting is less than a day, but the purger keeps rejected requests for at least a day.
  const purger = new ExecutionPurger({ ...options, retentionMs: 10 * DAY_MS, rejectedRetentionMs: 1 });
  await entered("rejected-1", ExecutionStatus.REJECTED);
  await entered("completed-1", ExecutionStatus.COMPLETED);
  await entered("unsettled-1", ExecutionStatus.COMPLETED, true, clock.now() + 100 * DAY_MS);
  await entered("working-1", ExecutionStatus.IN_PROGRESS, false);
  const remainingRows = async () => {
    await purger.purge();
    const ids = ["rejected-1", "completed-1", "unsettled-1", "working-1"];
    const executionIds: string[] = [];
    for (const id of ids) {
      const [record, receipts] = await store.read(async (tx) => [
        await findExecution(tx, id),
        await readReceipts(tx, id),
      ]);
      expect(receipts).toHaveLength(record === undefined ? 0 : 1);
      if (record !== undefined) executionIds.push(id);
    }
    return executionIds;
  };
  clock.advance(DAY_MS - 1);
  expect(await remainingRows()).toEqual(["rejected-1", "completed-1", "unsettled-1", "working-1"]);
  clock.advance(1);
  expect(await remainingRows()).toEqual(["completed-1", "unsettled-1", "working-1"]);
  clock.advance(9 * DAY_MS);
  expect(await remainingRows()).toEqual(["unsettled-1", "working-1"]);
  await purger.close();
});
