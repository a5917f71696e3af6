import { create } from "@bufbuild/protobuf";
import { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { VerificationResultSchema } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { decode, encode } from "@depute/wire";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApart, type TestPlatform } from "../gateway/platform.ts";
import {
  type Document,
  introduceAll,
  marketAt,
  offerOf,
  requestOf,
  resultOf,
  SELLER,
  valid,
} from "./market.ts";

let platform: TestPlatform & { stopServices(): Promise<void> };
beforeAll(async () => {
  platform = await startApart();
  await introduceAll(platform);
  platform.work(SELLER, async () => ({
    output: { score: 1 },
    delivery: { artifacts: [{ type: "result_payload", uri: "data:,1" }] },
  }));
});
afterAll(() => platform.stop());

const messageOf = <Desc extends Parameters<typeof decode>[0]>(schema: Desc, document: Document) => {
  const decoded = decode(schema, document);
  if (!decoded.ok) throw new Error(decoded.error.message);
  return decoded.message;
};

test("purchases over gRPC are readable over HTTP, and the reverse, with separate services", async () => {
  const { offers, executions } = platform.clients;
  const policy = {
    mode: "third_party_verified",
    required_artifacts: ["result_payload"],
    pass_criteria: ["x"],
  };
  const offerMessage = messageOf(OfferSchema, offerOf({ verification_policy: policy }));
  const { offer } = await offers.publishOffer({
    requestId: crypto.randomUUID(),
    offer: offerMessage as never,
  });
  const document = encode(OfferSchema, offer?.offer ?? create(OfferSchema)) as Document;
  const request = messageOf(ExecutionRequestSchema, requestOf(document)) as never;
  const { receipt, repeatedRequest } = await executions.requestExecution({ request });
  expect([receipt?.status, repeatedRequest]).toEqual([ExecutionStatus.ACCEPTED, false]);
  const requestId = receipt?.requestId ?? "";
  const market = marketAt(platform.url);
  const statuses: ExecutionStatus[] = [];
  let completed: Document;
  for await (const { receipt: numbered } of executions.watchReceipts({ requestId })) {
    statuses.push(numbered?.receipt?.status ?? ExecutionStatus.UNSPECIFIED);
    if (numbered?.receipt?.status !== ExecutionStatus.COMPLETED || completed !== undefined) continue;
    completed = await market.newest(requestId);
    const result = messageOf(VerificationResultSchema, resultOf(completed)) as never;
    const submitted = await executions.submitVerification({ result });
    expect(submitted.receipt?.financials?.paymentCaptureId).toBeDefined();
  }
  const { ACCEPTED, IN_PROGRESS, COMPLETED } = ExecutionStatus;
  expect(statuses).toEqual([ACCEPTED, IN_PROGRESS, COMPLETED, COMPLETED]);
  const { receipts } = await executions.listReceipts({ requestId });
  expect(receipts.map(({ sequence, settles }) => [Number(sequence), settles])).toEqual([
    [1, false],
    [2, false],
    [3, false],
    [4, true],
  ]);
  const { settlement } = await executions.getSettlement({ requestId });
  expect([settlement?.state, settlement?.finalAmount]).toEqual([SettlementState.CAPTURED, 250n]);
  const name = { case: "executionId", value: completed.execution_id } as const;
  const { execution } = await executions.getExecution({ name });
  expect(execution?.request?.requestId).toBe(requestId);
  valid("execution_receipt", await market.newest(requestId));
});

test("a refusal is an answer over gRPC too; a request that cannot be stored is an error", async () => {
  const { executions } = platform.clients;
  const offer = await marketAt(platform.url).publish(offerOf());
  const request = messageOf(ExecutionRequestSchema, requestOf(offer, { offer_version: "9" })) as Document;
  const { receipt } = await executions.requestExecution({ request });
  expect(receipt?.status).toBe(ExecutionStatus.REJECTED);
  const changed = { ...request, requestedAt: "2026-01-01T00:00:00Z" };
  await expect(executions.requestExecution({ request: changed })).rejects.toThrow(
    "was used with a different request",
  );
  await expect(executions.requestExecution({})).rejects.toThrow("request");
  const unknown = { case: "requestId", value: "request-of-nobody" } as const;
  await expect(executions.getExecution({ name: unknown })).rejects.toThrow("the execution does not exist");
});

test("while the services are unavailable, requests get a retryable error", async () => {
  const market = marketAt(platform.url);
  const offer = await market.publish(offerOf());
  await platform.stopServices();
  const { status, body } = await market.post("/agenta/execution_requests", requestOf(offer));
  expect([status, body.error.code, body.error.retryable]).toEqual([503, "upstream_dependency_failed", true]);
  expect(body.error.details.failure_mode).toBe("upstream_dependency_failed");
});
