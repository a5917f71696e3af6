import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { AppendContext } from "./context.ts";
import type { Party } from "./session.ts";
import type { About, MessageBody } from "./subject.ts";

/** A validated message, and the entry of ASP's table of transitions that allows it. */
export interface Move extends About {
  readonly envelope: Envelope;
  readonly body: MessageBody;
  readonly sender: Party;
  readonly context: AppendContext;
}
