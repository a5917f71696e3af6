import { DeputeError, ErrorReason } from "@depute/core";

/**
 * The limits of the memory for contexts that may not be persisted. One process has this memory, or all replicas share
 * it.
 */
export interface ContextRoom {
  /** Maximum total size of the data in bytes. A context takes up to a kilobyte of memory besides its data. */
  readonly bytes: number;
  /** Maximum number of contexts. */
  readonly number: number;
  /** Maximum number of contexts of one owner. */
  readonly ofOwner: number;
}

/** The present use of the memory, with one value for each limit of {@link ContextRoom}. */
export type RoomUse = ContextRoom;

/** Maximum number of contexts in memory. */
const MAX_CONTEXTS = 10_000;

/** Maximum number of one owner's contexts in memory, so that one owner does not take the whole memory. */
const MAX_OF_OWNER = 1_000;

/** Returns the limits for an owner. The principal `local` has no limit per owner, because it has no quotas. */
export function contextRoom(maxBytes: number, isLocal: boolean): ContextRoom {
  return { bytes: maxBytes, number: MAX_CONTEXTS, ofOwner: isLocal ? MAX_CONTEXTS : MAX_OF_OWNER };
}

/** Returns the first limit that `more` would exceed; undefined if `more` fits all limits. */
export function limitWithoutRoom(
  use: RoomUse,
  more: { readonly bytes: number; readonly number: number },
  room: ContextRoom,
): keyof ContextRoom | undefined {
  if (use.bytes + more.bytes > room.bytes) return "bytes";
  if (use.number + more.number > room.number) return "number";
  return use.ofOwner + more.number > room.ofOwner ? "ofOwner" : undefined;
}

const NAMES = { bytes: "bytes", number: "number", ofOwner: "of_owner" } as const;

/** Returns the error for contexts that exceed a limit of the memory. */
export function noRoom(limit: keyof ContextRoom, room: ContextRoom): DeputeError {
  const whose = limit === "ofOwner" ? "more of the owner's contexts" : "contexts";
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the memory has no room for ${whose} that may not be persisted: revoke contexts, or wait until contexts expire`,
    { metadata: { limit: `context_memory.${NAMES[limit]}`, max: String(room[limit]) } },
  );
}
