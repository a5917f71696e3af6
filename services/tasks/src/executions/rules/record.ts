import type { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { ApprovalState, SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";

/** An execution as it stands; its receipts are beside it. Times are epoch milliseconds, amounts minor units. */
export interface ExecutionRecord {
  readonly request: ExecutionRequest;
  /** Tells requests with one idempotency key apart. */
  readonly digest: string;
  /** The buyer's key; empty for one without. */
  readonly buyerPrincipal: string;
  readonly sellerPrincipal: string;
  readonly sellerOrganization: string;
  /** Empty for a rejected request. */
  readonly taskId: string;
  readonly status: ExecutionStatus;
  readonly approval: ApprovalState;
  readonly settlement: SettlementState;
  readonly limit: bigint;
  /** What the work costs; undefined before it completed. */
  readonly finalAmount: bigint | undefined;
  /** Empty while nothing is charged. */
  readonly captureId: string;
  readonly startBy: number;
  readonly deadline: number;
  /** Until when a verification is waited for; undefined while none is. */
  readonly verifyBy: number | undefined;
  readonly createMs: number;
  readonly endMs: number | undefined;
  /** The number of the newest receipt. */
  readonly lastNumber: number;
}
