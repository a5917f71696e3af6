import { type Performative, PerformativeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState, SessionStateSchema } from "@depute/contracts/asp/v0/session_pb";
import { formatTime } from "@depute/core";
import { isPrincipal, objectsOf, type Session } from "./session.ts";
import { TABLE } from "./table.ts";

/** Texts on how a session ended, for the refusals of later messages. */
const ENDS: Readonly<Record<NonNullable<Session["end"]>, string>> = {
  closed: "both parties sent CLOSE",
  rejected: "the invitation was rejected",
  withdrawn: "the invitation was withdrawn",
  invitation_timeout: "the invitation was not answered, or the parties did not introduce themselves, in time",
  idle: "no message came before the idle limit",
  expired: "its maximum duration had passed",
  close_grace: "one party sent CLOSE, and the other party did not send it in time",
};

/** Explains why an ended session refuses messages, and how the sender can proceed. */
export function endOf({ state, end, endMs }: Session): string {
  const when = endMs === undefined ? "" : ` at ${formatTime(endMs)}`;
  const why = end === undefined ? "" : `: ${ENDS[end]}`;
  return `the session has ended as ${nameOf(state)}${when}${why}; open another session`;
}

/** Explains why the session's state refuses a message, and which messages it allows. */
export function whyNotNow(session: Session, performative: Performative): string {
  const requirement = firstRequirement(session);
  const mismatch = `${PerformativeSchema.value[performative]?.localName ?? ""} does not fit the state ${nameOf(session.state)}`;
  return requirement === undefined
    ? `${mismatch}: it allows ${allowedIn(session.state)}`
    : `${mismatch}: ${requirement}`;
}

/** Returns a text about the messages that the state INVITED requires first; undefined in any other state. */
function firstRequirement(session: Session): string | undefined {
  if (session.state !== SessionState.INVITED) return undefined;
  const invitation = objectsOf(session, "invitation").find(({ status }) => status === "open");
  if (invitation !== undefined)
    return `the invitation awaits ACCEPT or REJECT from ${invitation.addressee ?? ""}`;
  const owing = session.parties.filter((party) => isPrincipal(party) && !party.introduced);
  const missingIds = owing.map(({ agentId }) => agentId).join(" and ");
  return `both parties must first send INFORM with informType "identity" and their agent card as data; it is missing from ${missingIds}`;
}

/** Returns the names of the performatives that a state allows to at least one role. */
function allowedIn(state: SessionState): string {
  const names = TABLE.filter(({ moves }) => moves.has(state)).map(
    ({ performative }) => PerformativeSchema.value[performative]?.localName ?? "",
  );
  return [...new Set(names)].join(", ");
}

function nameOf(state: SessionState): string {
  return SessionStateSchema.value[state]?.localName ?? "";
}
