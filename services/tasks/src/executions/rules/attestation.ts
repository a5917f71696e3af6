import { create } from "@bufbuild/protobuf";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  CheckStatus,
  Decision,
  type VerificationResult,
  VerificationResultSchema,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { formatTime } from "@depute/core";
import { PROTOCOL_VERSION } from "./receipt.ts";
import type { ExecutionRecord } from "./record.ts";

/**
 * The verification of a result by its seller's own word, as the offer's mode `seller_attested` has it. The platform makes it
 * once it has itself found the output to fit the schema, the required evidence to be there and the digests to be right:
 * these are its checks.
 */
export function attestation(
  { request, taskId }: ExecutionRecord,
  { sellerAgent }: Offer,
  { verificationId, receiptId, nowMs }: { verificationId: string; receiptId: string; nowMs: number },
): VerificationResult {
  const check = (checkId: string, description: string) => ({
    checkId,
    description,
    status: CheckStatus.PASS,
  });
  return create(VerificationResultSchema, {
    protocolVersion: PROTOCOL_VERSION,
    messageType: "verification_result",
    verificationId,
    requestId: request.requestId,
    receiptId,
    executionId: taskId,
    verifierAgent: {
      agentId: request.sellerAgentId,
      organizationId: sellerAgent?.organizationId ?? "",
    },
    decision: Decision.PASS,
    score: 1,
    summary: "attested by the seller on delivery",
    checks: [
      check("output_schema", "the result fits the offer's output_schema"),
      check("required_evidence", "the required artifacts are there"),
      check("digests", "the artifacts have their digests"),
    ],
    verifiedAt: formatTime(nowMs),
  });
}
