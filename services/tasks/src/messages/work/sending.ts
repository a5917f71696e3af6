import type { HandlerContext } from "@connectrpc/connect";
import type { CapMessage } from "@depute/contracts/cap/v1/message_pb";
import type { Identity } from "@depute/service";
import type { Kind } from "../rules/message.ts";
import type { Participant } from "../rules/participant.ts";

/** A message to send, after the check that the caller may act for the message's sender. */
export interface Sending {
  readonly message: CapMessage;
  readonly kind: Kind;
  readonly sender: Participant;
  readonly recipient: Participant;
  readonly identity: Identity;
  readonly context: HandlerContext;
}
