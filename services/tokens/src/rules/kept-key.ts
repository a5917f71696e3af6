import { DeputeError, ErrorReason } from "@depute/core";

/**
 * Milliseconds for which a replaced key may still prove possession and attenuate. By default, a token that names the
 * key as delegatee has at most this lifetime.
 */
export const REPLACED_MS = 24 * 60 * 60 * 1000;
/** Maximum number of keys of one owner, including replaced and revoked keys. */
export const MAX_KEYS_OF_ONE = 1000;

/** The stored state of a kept key. */
export interface KeyLife {
  readonly id: string;
  readonly state: "active" | "replaced" | "revoked";
  /** The time when the key was replaced or revoked, in epoch milliseconds; 0 while the key is active. */
  readonly endTime: number;
}

/** The uses of a kept key. `prove` signs holder proofs, and `rotate` replaces the key. */
export type KeyUse = "mint" | "attenuate" | "prove" | "revoke" | "rotate";

export type KeptKeyState = KeyLife["state"] | "retired";

/** The uses that each state of a key allows. In every state, a key may sign revocations. */
const USES: Readonly<Record<KeptKeyState, readonly KeyUse[]>> = {
  active: ["mint", "attenuate", "prove", "revoke", "rotate"],
  replaced: ["attenuate", "prove", "revoke", "rotate"],
  retired: ["revoke", "rotate"],
  revoked: ["revoke"],
};

/** Returns the state of a key at a time. A replaced key is `retired` after REPLACED_MS. */
export function keptKeyState({ state, endTime }: KeyLife, now: number): KeptKeyState {
  return state === "replaced" && now >= endTime + REPLACED_MS ? "retired" : state;
}

/**
 * Requires that the key's state allows a use.
 *
 * @throws DeputeError KEY_NOT_USABLE
 */
export function assertUsable(key: KeyLife, use: KeyUse, now: number): void {
  const state = keptKeyState(key, now);
  if (USES[state].includes(use)) return;
  throw new DeputeError(ErrorReason.KEY_NOT_USABLE, `the key is ${state}; use an active key`, {
    metadata: { key: key.id, state },
  });
}
