import type { Client } from "@connectrpc/connect";
import type { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import type { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import type { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import type { WakeUps } from "../../core/engine/wake-ups.ts";
import type { TasksContext } from "../../core/handlers/context.ts";
import type { ExecutionBook } from "../book/book.ts";
import type { Approvals } from "../errands/approvals.ts";
import type { CallbackKey } from "../errands/callback-key.ts";

/** What the handlers of executions work with. */
export interface ExecutionsContext {
  readonly tasks: TasksContext;
  readonly book: ExecutionBook;
  readonly approvals: Approvals;
  readonly offers: Client<typeof OfferService>;
  readonly organizations: Client<typeof OrganizationService>;
  readonly results: Client<typeof ResultService>;
  readonly wakeUps: WakeUps;
  readonly callbackKey: CallbackKey;
}
