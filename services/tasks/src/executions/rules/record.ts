import type { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { ApprovalState, SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";

/**
 * The present state of an execution. Other rows store its receipts. Times are epoch milliseconds, amounts minor units
 * of the currency.
 */
export interface ExecutionRecord {
  readonly request: ExecutionRequest;
  /** Digest of the request. A second request with the same idempotency key must have the same digest. */
  readonly digest: string;
  /** The buyer's key; empty for a buyer without a key. */
  readonly buyerPrincipal: string;
  /**
   * The revocation ids of the blocks of the buyer's token, the authority block's first; empty without a token.
   * Undefined for an execution from before this column existed.
   */
  readonly authority: readonly string[] | undefined;
  /** The organization that owns the execution; empty for none. */
  readonly organization: string;
  readonly sellerPrincipal: string;
  readonly sellerOrganization: string;
  /** The id of the task; empty for a rejected request. */
  readonly taskId: string;
  readonly status: ExecutionStatus;
  readonly approval: ApprovalState;
  readonly settlement: SettlementState;
  readonly limit: bigint;
  /** The cost of the work; undefined until its completion. */
  readonly finalAmount: bigint | undefined;
  /** The id of the charge; empty until the buyer is charged. */
  readonly captureId: string;
  readonly startBy: number;
  readonly deadline: number;
  /** The time by which a verification must arrive; undefined if the payment waits for none. */
  readonly verifyBy: number | undefined;
  readonly createMs: number;
  readonly endMs: number | undefined;
  /** The number of the execution's newest receipt. */
  readonly lastNumber: number;
}
