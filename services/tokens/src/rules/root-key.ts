import { DeputeError, ErrorReason } from "@depute/core";
import { type DenialReason, formatTime } from "@depute/dct";

/** Maximum number of earlier keys whose overlap may run at one time. */
export const MAX_OVERLAPPING = 4;
/**
 * Maximum number of root keys, including retired ones. The service keeps retired keys, so that their signatures can
 * still be verified.
 */
export const MAX_ROOT_KEYS = 1000;
/** Maximum overlap in milliseconds, as in the contract. */
export const MAX_OVERLAP_MS = 90 * 24 * 60 * 60 * 1000;

/** The life of a root key. Times are epoch milliseconds. */
export interface RootKeyLife {
  readonly principal: string;
  /** The time from which the key signs. */
  readonly createTime: number;
  /** The time from which tokens of the key are denied; 0 while the key signs. */
  readonly retireTime: number;
  /**
   * Whether the key was retired at once, or its private key was erased. Such a key stays retired, also at a replica whose
   * clock is behind, and after the clock was set back.
   */
  readonly isRetired: boolean;
}

export type RootKeyState = "signing" | "verifying" | "retired";

/**
 * Returns the state of a root key at a time. A key whose `retireTime` is 0 signs, because only a rotation sets an end.
 */
export function rootKeyState(
  { retireTime, isRetired }: Pick<RootKeyLife, "retireTime" | "isRetired">,
  now: number,
): RootKeyState {
  if (isRetired) return "retired";
  if (retireTime === 0) return "signing";
  return now < retireTime ? "verifying" : "retired";
}

/** The end of a key's overlap. */
export interface RootKeyEnd {
  readonly principal: string;
  readonly retireTime: number;
  readonly isRetired: boolean;
}

/**
 * Returns the ends of the earlier keys after a rotation. An overlap never grows: an end that an earlier rotation set
 * stays if it is sooner. Omits keys whose end does not change.
 *
 * @param overlapMs 0 retires all earlier keys at once
 * @throws DeputeError LIMIT_EXCEEDED
 */
export function rotationEnds(keys: readonly RootKeyLife[], now: number, overlapMs: number): RootKeyEnd[] {
  if (keys.length >= MAX_ROOT_KEYS) throw limitExceeded("root_keys", MAX_ROOT_KEYS);
  const overlapping = keys.filter((key) => rootKeyState(key, now) === "verifying");
  if (overlapMs > 0 && overlapping.length >= MAX_OVERLAPPING)
    throw limitExceeded("overlapping_root_keys", MAX_OVERLAPPING);
  const end = now + overlapMs;
  return keys
    .filter(({ retireTime }) => retireTime === 0 || retireTime > end)
    .map(({ principal, isRetired }) => ({
      ...{ principal, retireTime: end },
      isRetired: isRetired || overlapMs === 0,
    }));
}

/**
 * Returns the end of a key that an operator retires now. Undefined if the key is retired already.
 *
 * @throws DeputeError KEY_NOT_FOUND, KEY_NOT_USABLE for the key that signs
 */
export function retirementEnd(
  keys: readonly RootKeyLife[],
  principal: string,
  now: number,
): RootKeyEnd | undefined {
  const key = keys.find((one) => one.principal === principal);
  if (key === undefined) {
    throw new DeputeError(ErrorReason.KEY_NOT_FOUND, "the platform has no such root key", {
      metadata: { key: principal },
      violations: [{ field: "principal", description: "is not a root key of the platform" }],
    });
  }
  const state = rootKeyState(key, now);
  if (state === "retired") return undefined;
  if (state === "verifying") return { principal, retireTime: now, isRetired: true };
  throw new DeputeError(
    ErrorReason.KEY_NOT_USABLE,
    "the root key signs; rotate the root with retire_now, which retires it at once",
    {
      metadata: { key: principal, state },
      violations: [{ field: "principal", description: "is the root key that signs" }],
    },
  );
}

/** Returns the time at which the next overlap ends; Infinity without any. Until then the states do not change. */
export function nextRetirement(keys: readonly RootKeyLife[], now: number): number {
  return Math.min(
    ...keys.map(({ retireTime }) => (retireTime > now ? retireTime : Number.POSITIVE_INFINITY)),
  );
}

/** Returns the denial of a token that a retired root signed. */
export function rootRetired(retireTime: number): DenialReason {
  const detail = `authority.issuer: the root key retired at ${formatTime(retireTime)}; get a token of the present root`;
  return { type: "root_retired", detail };
}

/** The name by which a replica of the tokens service says that it knows rotations of the root key. */
export const ROOT_ROTATION = "root-rotation";
/** Maximum number of replicas that a refusal names. */
const MAX_NAMED = 10;

/** A replica of a service, as the replica table lists it. */
export interface ListedReplica {
  readonly service: string;
  readonly address: string;
  readonly version: string;
  readonly status: "serving" | "not serving" | "lost";
  readonly features: readonly string[];
}

/**
 * Requires that every running replica of the tokens service knows rotations of the root key.
 *
 * @throws DeputeError REPLICA_TOO_OLD
 */
export function assertReplicasRotate(replicas: readonly ListedReplica[]): void {
  const older = replicas.filter(
    ({ service, status, features }) =>
      service === "tokens" && status !== "lost" && !features.includes(ROOT_ROTATION),
  );
  if (older.length === 0) return;
  const named = older.slice(0, MAX_NAMED);
  const described = named.map(({ address, version }) => `${address} (version ${version || "unknown"})`);
  throw new DeputeError(
    ErrorReason.REPLICA_TOO_OLD,
    `${older.length} replicas of the tokens service do not know rotations of the root key: ${described.join(", ")}; ` +
      "upgrade or stop them, or set allow_older_replicas",
    {
      metadata: { replicas: named.map(({ address }) => address).join(",") },
      violations: [{ field: "allow_older_replicas", description: "is required while such replicas run" }],
    },
  );
}

function limitExceeded(limit: string, max: number): DeputeError {
  const what = limit === "root_keys" ? "root keys" : "overlapping root keys; retire one first";
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `the platform has the most ${what}`, {
    metadata: { limit, max: String(max) },
  });
}
