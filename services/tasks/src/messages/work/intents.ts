import { MessageEffect } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { WriteTx } from "@depute/store";
import type { Intent } from "../rules/permit.ts";
import { parentIdOf } from "../rules/task-id.ts";
import type { StoredMessage } from "../store/message-rows.ts";
import { complete } from "./complete.ts";
import type { CapContext } from "./context.ts";
import { decide, noteAnswer, noteInquiry } from "./decide.ts";
import { delegate, type PreparedDelegation, prepareDelegation } from "./delegate.ts";
import { post } from "./post.ts";
import { prepareReport, type Reassignment, report } from "./report.ts";
import type { Sending } from "./sending.ts";
import { leaseToInbox } from "./worker.ts";

/** Facts that other services supplied before the transaction. */
export interface Prepared {
  readonly delegation?: PreparedDelegation | undefined;
  readonly reassignment?: Reassignment | undefined;
  /** The number of the overseer's question in the review queue. */
  readonly inquiry?: number;
}

/** Fetches, from other services, the facts that an intent needs before its transaction. */
export async function prepare(cap: CapContext, sending: Sending, intent: Intent): Promise<Prepared> {
  switch (intent.does) {
    case "delegate": {
      const { sender, context } = sending;
      return { delegation: await prepareDelegation(cap, intent.notice, sender.principal, context) };
    }
    case "report":
      return { reassignment: await prepareReport(cap, sending, intent) };
    default:
      return {};
  }
}

/** Applies the effect of a message, stores the message and delivers it. */
export async function perform(
  tx: WriteTx,
  cap: CapContext,
  sending: Sending,
  intent: Intent,
  { delegation, reassignment, inquiry }: Prepared,
): Promise<StoredMessage> {
  const { message, kind, sender } = sending;
  // A delegate's first message about its task starts the task. Its first delegation of a child task also starts the
  // task.
  const { taskId } = kind.value;
  await leaseToInbox(tx, cap, intent.does === "delegate" ? parentIdOf(taskId) : taskId, sender.id);
  switch (intent.does) {
    case "say":
      if (intent.answers !== undefined) await noteAnswer(tx, cap, sending, intent.answers);
      return post(tx, cap, {
        message,
        effect: MessageEffect.SAID,
        organization: sending.identity.organization,
        fromOutside: intent.fromOutside === true,
        carries: intent.carries ?? "",
      });
    case "delegate":
      if (delegation === undefined) throw new Error("a delegation was not prepared");
      return delegate(tx, cap, sending, intent, delegation);
    case "complete":
      return complete(tx, cap, sending, intent);
    case "report":
      return report(tx, cap, sending, intent, reassignment);
    case "inquire":
      await noteInquiry(tx, cap, intent.reviewed, inquiry ?? 0);
      return post(tx, cap, { message, effect: MessageEffect.INQUIRED });
    case "decide":
      return decide(tx, cap, sending, intent);
  }
}
