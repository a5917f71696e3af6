import type { Body, Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { Refused } from "./refusal.ts";
import { objectOf, objectsOf, type Session, type SessionObject } from "./session.ts";
import type { Subject } from "./table.ts";

/** The type of a PROPOSE that opens a session. (ASP specification "State machine") */
export const INVITATION_TYPE = "session-invitation";
/** The type of an INFORM by which a party introduces itself; its data is the agent's card. Depute's choice. */
export const IDENTITY_TYPE = "identity";
/** The type of an INFORM that contains the decision of a higher authority. Depute's choice. */
export const RESOLUTION_TYPE = "resolution";
/** The type of an INFORM that reports a result. (ASP message 6) */
export const RESULT_TYPE = "result";

export type MessageBody = Exclude<Body["kind"], { case: undefined }>;

/**
 * The subject of a message, and the object to which the message refers. The subject selects a row of ASP's table of
 * transitions.
 */
export interface About {
  readonly subject: Subject;
  readonly object?: SessionObject;
}

/** Returns the body of a message. Validation has ensured that the body fits the performative. */
export function bodyOf({ content }: Envelope): MessageBody {
  const kind = content?.body?.kind;
  if (kind?.case === undefined) throw new Refused("malformed", "the body is missing");
  return kind;
}

/**
 * Finds the subject of a message.
 *
 * @throws Refused unknown_reference, reference_closed, expired
 */
export function aboutOf(session: Session, body: MessageBody): About {
  switch (body.case) {
    case "propose":
      return { subject: body.value.type === INVITATION_TYPE ? "invitation" : "proposal" };
    case "inform":
      return informed(session, body.value.informType);
    case "observe":
      return { subject: "talk" };
    case "query":
      return { subject: "question" };
    case "clarify":
      return { subject: "question", object: live(session, body.value.referenceId) };
    case "commit":
      return { subject: "commitment" };
    case "delegate":
      return { subject: "delegation" };
    case "escalate":
      if (body.value.referenceId !== undefined) find(session, body.value.referenceId);
      return { subject: "escalation" };
    case "close":
      return { subject: "session" };
    default:
      return answered(session, body.value.referenceId, body.case === "withdraw");
  }
}

function informed(session: Session, type: string): About {
  if (type === IDENTITY_TYPE) return { subject: "identity" };
  if (type !== RESOLUTION_TYPE) return { subject: "talk" };
  const open = objectsOf(session, "escalation").find(({ status }) => status === "open");
  return open === undefined ? { subject: "resolution" } : { subject: "resolution", object: open };
}

/**
 * Finds the object that ACCEPT, REJECT, COUNTER or WITHDRAW refers to. The object must be open, or an accepted
 * commitment. WITHDRAW may also refer to an accepted or reported delegation.
 */
function answered(session: Session, id: string, isWithdrawal: boolean): About {
  const object = find(session, id);
  const { kind, status } = object;
  if (status === "open") return { subject: kind, object };
  if (kind === "commitment" && status === "accepted") return { subject: "fulfilment", object };
  const isRunning = kind === "delegation" && (status === "accepted" || status === "reported");
  if (isRunning && isWithdrawal) return { subject: kind, object };
  throw closed(object);
}

/** Finds the object that CLARIFY refers to. The object must be open, or accepted and not yet fulfilled. */
function live(session: Session, id: string): SessionObject {
  const object = find(session, id);
  if (object.status === "open" || object.status === "accepted") return object;
  throw closed(object);
}

function find(session: Session, id: string): SessionObject {
  const object = objectOf(session, id);
  if (object === undefined)
    throw new Refused("unknown_reference", "referenceId is not the id of an object in this session");
  return object;
}

function closed({ status }: SessionObject): Refused {
  return status === "expired"
    ? new Refused("expired", "the object of referenceId has lapsed")
    : new Refused("reference_closed", `the object of referenceId is closed: ${status}`);
}
