import type { WatchInboxResponse } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { SseEvent } from "../../edge/sse.ts";
import { inboxDocument } from "./documents.ts";
import { toCapError } from "./errors.ts";

/** The event name of each kind of message, as CAP defines it. */
const EVENTS = {
  message: "message",
  delegationNotice: "delegation_notice",
  errorResponse: "error_response",
  oversightInquiry: "oversight_inquiry",
  oversightDecision: "oversight_decision",
} as const;

/**
 * Converts an inbox to server-sent events, which have the types of the messages as names. The event id is the message's
 * sequence in the inbox.
 */
export async function* toSse(
  watched: AsyncIterable<WatchInboxResponse>,
  requestId: string,
): AsyncGenerator<SseEvent, void, undefined> {
  try {
    for await (const { message } of watched) {
      const kind = message?.message?.kind.case;
      if (message === undefined || kind === undefined) continue;
      yield { event: EVENTS[kind], id: String(message.sequence), data: inboxDocument(message) };
    }
  } catch (thrown) {
    yield { event: "error", data: toCapError(thrown, requestId).body };
  }
}
