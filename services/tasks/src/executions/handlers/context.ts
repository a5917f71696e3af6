import type { CallOptions, Client, HandlerContext } from "@connectrpc/connect";
import type { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import type { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import type { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import type { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import type { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import type { Clock, Timers } from "@depute/core";
import { type Authority, ownOptions, type WakeUps } from "@depute/service";
import { asCaller, type Caller, type TaskEngine } from "../../core/index.ts";
import type { ExecutionBook } from "../book/book.ts";
import type { Approvals } from "../outbox/approvals.ts";
import type { CallbackKey } from "../outbox/callback-key.ts";

/** The dependencies of the handlers. */
export interface ExecutionsContext {
  readonly engine: TaskEngine;
  readonly authority: Authority;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Milliseconds between two polls of a stream, for changes without a wake-up. */
  readonly pollMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  readonly book: ExecutionBook;
  readonly approvals: Approvals;
  readonly agents: Client<typeof AgentService>;
  readonly discovery: Client<typeof DiscoveryService>;
  readonly offers: Client<typeof OfferService>;
  readonly organizations: Client<typeof OrganizationService>;
  readonly results: Client<typeof ResultService>;
  readonly verification: Client<typeof VerificationService>;
  readonly wakeUps: WakeUps;
  readonly callbackKey: CallbackKey;
}

/** Returns the caller's identity, which decides which tasks and executions the caller may see. */
export async function callerOf(
  { authority }: Pick<ExecutionsContext, "authority">,
  context: HandlerContext,
): Promise<Caller> {
  return asCaller(await authority.identify(context));
}

/** Returns the options for calls that this service makes while it handles a request. */
export function callOptions(
  { clock }: Pick<ExecutionsContext, "clock">,
  context: HandlerContext,
): CallOptions {
  return ownOptions(context, clock);
}
