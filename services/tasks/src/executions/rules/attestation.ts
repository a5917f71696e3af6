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
 * The seller's own verification of a result, for offers in the mode `seller_attested`. The platform creates this
 * verification after it has checked the schema, the required evidence and the digests.
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
      check("required_evidence", "the required artifacts are present"),
      check("digests", "the artifacts match their digests"),
    ],
    verifiedAt: formatTime(nowMs),
  });
}
