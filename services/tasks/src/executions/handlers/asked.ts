import type { ExecutionReceipt } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { Identity } from "@depute/service";
import type { Admitted } from "../../core/index.ts";

/** The first receipt of a request, and whether it was issued before. */
export interface Answered {
  readonly receipt: ExecutionReceipt;
  readonly repeated: boolean;
}

/** A request with who asks, as far as nothing of it changes while it is looked at. */
export interface Asked {
  readonly request: ExecutionRequest;
  readonly digest: string;
  readonly identity: Identity;
  readonly buyer: Agent;
  /** Whose the execution is: the buyer's key, or whoever calls for a buyer without one. */
  readonly principal: string;
}

/** What is needed to accept a request. */
export interface Acceptable {
  readonly offer: Offer;
  readonly seller: Agent;
  readonly admitted: Admitted;
}
