import type { ServiceImpl } from "@connectrpc/connect";
import type { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { CapContext } from "../work/context.ts";
import { acknowledgeMessages, listConversation, listInbox, watchInbox } from "./inbox.ts";
import { traceLineage } from "./lineage.ts";
import { sendMessage } from "./send.ts";

/** Handles the calls of MessageService, which CAP's participants make. */
export function messageService(cap: CapContext): ServiceImpl<typeof MessageService> {
  return {
    sendMessage: (request, context) => sendMessage(cap, request, context),
    listInbox: (request, context) => listInbox(cap, request, context),
    acknowledgeMessages: (request, context) => acknowledgeMessages(cap, request, context),
    watchInbox: (request, context) => watchInbox(cap, request, context),
    listConversation: (request, context) => listConversation(cap, request, context),
    traceLineage: (request, context) => traceLineage(cap, request, context),
  };
}
