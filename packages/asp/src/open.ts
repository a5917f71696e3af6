import { MAX_DURATION_MS, MAX_OBJECTS, MAX_OPEN_OBJECTS } from "./limits.ts";
import type { Move } from "./move.ts";
import { Refused } from "./refusal.ts";
import { objectOf, type Session, type SessionObject, withObject } from "./session.ts";

type Opened = Pick<SessionObject, "kind"> &
  Partial<Omit<SessionObject, "id" | "kind" | "status" | "author" | "ordinal" | "expireMs">> & {
    /** The object's id. If the body states none, the message's id is used. */
    id?: string | undefined;
    /** The time at which the object lapses, ISO 8601 with any offset; absent if the body states none. */
    validUntil?: string | undefined;
    /**
     * Milliseconds until the object lapses, if the message states no `maxResponseTimeMs`; absent for an object that
     * then lapses only at `validUntil`.
     */
    waitMs?: number;
  };

/**
 * Opens an object in a session, such as a proposal, a question or an invitation.
 *
 * @throws Refused id_taken, limit_exceeded, at_capacity, malformed; expired if the object would already have lapsed
 */
export function openObject(
  session: Session,
  { envelope, sender, context }: Pick<Move, "envelope" | "sender" | "context">,
  { id = envelope.messageId, validUntil, waitMs, ...members }: Opened,
): Session {
  if (objectOf(session, id) !== undefined)
    throw new Refused("id_taken", "the id is already used in this session: choose another id");
  const objects = Object.values(session.objects);
  const open = objects.filter(({ status }) => status === "open").length;
  if (objects.length >= MAX_OBJECTS) {
    throw new Refused(
      "limit_exceeded",
      `a session may open at most ${MAX_OBJECTS} objects: continue in another session`,
      { limit: "session.objects", max: MAX_OBJECTS },
    );
  }
  if (open >= MAX_OPEN_OBJECTS) {
    throw new Refused(
      "at_capacity",
      `at most ${MAX_OPEN_OBJECTS} objects may be open at once: answer or withdraw one`,
      { limit: "session.open_objects", max: MAX_OPEN_OBJECTS },
    );
  }
  const { constraints } = envelope;
  const limitMs = constraints?.maxResponseTimeMs;
  const until = [
    ...(validUntil === undefined ? [] : [timeOf(validUntil)]),
    ...(limitMs === undefined ? [] : [context.nowMs + Math.min(Number(limitMs), MAX_DURATION_MS)]),
    ...(limitMs === undefined && waitMs !== undefined ? [context.nowMs + waitMs] : []),
  ];
  if (until.some((ms) => ms <= context.nowMs))
    throw new Refused("expired", "the object would already have lapsed: state a later time");
  return withObject(session, {
    round: 0,
    ...members,
    id,
    status: "open",
    author: sender.agentId,
    ordinal: session.messageCount + 1,
    ...(until.length === 0 ? {} : { expireMs: Math.min(...until) }),
    ...(constraints?.allowedPerformatives === undefined
      ? {}
      : { allowed: constraints.allowedPerformatives.values }),
    ...(constraints?.requiredTrustScore === undefined
      ? {}
      : { requiredTrust: constraints.requiredTrustScore }),
  });
}

function timeOf(text: string): number {
  const ms = Date.parse(text);
  if (!Number.isFinite(ms)) throw new Refused("malformed", "validUntil is not a time");
  return ms;
}
