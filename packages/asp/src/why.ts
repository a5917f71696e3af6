import { type Performative, PerformativeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState, SessionStateSchema } from "@depute/contracts/asp/v0/session_pb";
import { formatTime } from "@depute/core";
import { isPrincipal, objectsOf, type Session } from "./session.ts";
import { TABLE } from "./table.ts";

/** How a session came to its end, for whoever writes to it afterwards. */
const ENDS: Readonly<Record<NonNullable<Session["end"]>, string>> = {
  closed: "both parties sent CLOSE",
  rejected: "the invitation was rejected",
  withdrawn: "the invitation was withdrawn",
  invitation_timeout: "the invitation was not answered, or the parties did not introduce themselves, in time",
  idle: "nobody wrote for too long",
  expired: "its time was over",
  close_grace: "one party sent CLOSE, and the time of the other to do so passed",
};

/** Why nothing more is said in a session, and what to do. */
export function endOf({ state, end, endMs }: Session): string {
  const when = endMs === undefined ? "" : ` at ${formatTime(endMs)}`;
  const why = end === undefined ? "" : `: ${ENDS[end]}`;
  return `the session has ended as ${nameOf(state)}${when}${why}; open another one`;
}

/** Why a message is not allowed in the state of a session, and what is. */
export function whyNotNow(session: Session, performative: Performative): string {
  const owed = owedFirst(session);
  const said = `${PerformativeSchema.value[performative]?.localName ?? ""} does not fit the state ${nameOf(session.state)}`;
  return owed === undefined ? `${said}: it allows ${allowedIn(session.state)}` : `${said}: ${owed}`;
}

/** What has to be said first in a session that has just begun; undefined in every other. */
function owedFirst(session: Session): string | undefined {
  if (session.state !== SessionState.INVITED) return undefined;
  const invitation = objectsOf(session, "invitation").find(({ status }) => status === "open");
  if (invitation !== undefined)
    return `the invitation awaits ACCEPT or REJECT of ${invitation.addressee ?? ""}`;
  const owing = session.parties.filter((party) => isPrincipal(party) && !party.introduced);
  const who = owing.map(({ agentId }) => agentId).join(" and ");
  return `both parties first introduce themselves by INFORM with informType "identity" and their agent card as data; ${who} still has to`;
}

/** The performatives that some agent may send in a state, by name. */
function allowedIn(state: SessionState): string {
  const names = TABLE.filter(({ moves }) => moves.has(state)).map(
    ({ performative }) => PerformativeSchema.value[performative]?.localName ?? "",
  );
  return [...new Set(names)].join(", ");
}

function nameOf(state: SessionState): string {
  return SessionStateSchema.value[state]?.localName ?? "";
}
