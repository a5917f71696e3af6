import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { AppendContext } from "./context.ts";
import type { Party } from "./session.ts";
import type { About, MessageBody } from "./subject.ts";

/** A validated message, its sender, its subject and the object to which it refers. */
export interface Move extends About {
  readonly envelope: Envelope;
  readonly body: MessageBody;
  readonly sender: Party;
  readonly context: AppendContext;
}
