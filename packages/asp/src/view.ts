import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  SessionObjectListSchema,
  type SessionObjectSchema,
  SessionSchema,
  type Session as SessionView,
} from "@depute/contracts/asp/v0/session_pb";
import { formatTime } from "@depute/core";
import { objectsOf, type Party, type Session, type SessionObject } from "./session.ts";

/**
 * Returns the session in the form of RPC responses.
 *
 * @param withObjects whether the response includes the session's objects
 */
export function viewOf(session: Session, withObjects = true): SessionView {
  const { returnsTo, organization, objects: _objects } = session;
  return create(SessionSchema, {
    sessionId: session.sessionId,
    state: session.state,
    participants: session.parties.map(participant),
    lastHash: session.lastHash,
    messageCount: session.messageCount,
    createdAt: formatTime(session.createMs),
    updatedAt: formatTime(session.updateMs),
    expiresAt: formatTime(session.expireMs),
    ...(returnsTo === undefined ? {} : { returnsTo }),
    ...(organization === undefined ? {} : { organization }),
    ...(withObjects
      ? { objects: create(SessionObjectListSchema, { values: objectsOf(session).map(object) }) }
      : {}),
  });
}

function participant({ agentId, orgId, role, trustScore, nextSequence, delegationId, authority }: Party) {
  return {
    agentId,
    role,
    nextSequenceNumber: BigInt(nextSequence),
    ...(orgId === undefined ? {} : { orgId }),
    ...(trustScore === undefined ? {} : { trustScore }),
    ...(delegationId === undefined ? {} : { delegationId }),
    ...(authority === undefined ? {} : { authority }),
  };
}

function object(sessionObject: SessionObject): MessageInitShape<typeof SessionObjectSchema> {
  const { id: objectId, kind, status, author, expireMs, escrow, result } = sessionObject;
  return {
    objectId,
    kind,
    status,
    author,
    ...(expireMs === undefined ? {} : { expiresAt: formatTime(expireMs) }),
    ...(escrow?.state === undefined ? {} : { escrowState: escrow.state }),
    ...(result === undefined ? {} : { resultMessageId: result.messageId }),
  };
}
