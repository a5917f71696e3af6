import type { ExecutionReceipt } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { Authorised } from "@depute/service";
import type { Admitted } from "../../core/index.ts";

/** The first receipt of a request, and whether an earlier identical call already got that receipt. */
export interface Answered {
  readonly receipt: ExecutionReceipt;
  readonly repeated: boolean;
}

/** A request with its caller's identity and its buyer. These values stay the same during the whole admission. */
export interface Asked {
  readonly request: ExecutionRequest;
  readonly digest: string;
  readonly identity: Authorised;
  readonly buyer: Agent;
  /** The principal that owns the execution: the buyer's principal, or the caller if the buyer has no principal. */
  readonly principal: string;
}

/** The facts that the service needs to accept a request. */
export interface Acceptable {
  readonly offer: Offer;
  readonly seller: Agent;
  readonly admitted: Admitted;
}
