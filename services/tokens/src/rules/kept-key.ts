import { DeputeError, ErrorReason } from "@depute/core";

/** Milliseconds that a replaced key still proves and narrows what was handed to it: no token lives longer. */
export const REPLACED_MS = 24 * 60 * 60 * 1000;
/** Keys that one owner may have, those that are no longer used included. */
export const MAX_KEYS_OF_ONE = 1000;

/** What is stored of a kept key's life. */
export interface KeyLife {
  readonly id: string;
  readonly state: "active" | "replaced" | "revoked";
  /** Milliseconds since 1970; 0 while it is active. */
  readonly endTime: number;
}

/** What a key is used for. */
export type KeyUse = "mint" | "attenuate" | "prove" | "revoke" | "rotate";

export type KeyStanding = KeyLife["state"] | "retired";

/** Uses by standing. To revoke what it signed stays open to every key. */
const USES: Readonly<Record<KeyStanding, readonly KeyUse[]>> = {
  active: ["mint", "attenuate", "prove", "revoke", "rotate"],
  replaced: ["attenuate", "prove", "revoke", "rotate"],
  retired: ["revoke", "rotate"],
  revoked: ["revoke"],
};

/** What a key may still do now. */
export function keyStanding({ state, endTime }: KeyLife, now: number): KeyStanding {
  return state === "replaced" && now >= endTime + REPLACED_MS ? "retired" : state;
}

/** @throws DeputeError KEY_NOT_USABLE */
export function assertUsable(key: KeyLife, use: KeyUse, now: number): void {
  const state = keyStanding(key, now);
  if (USES[state].includes(use)) return;
  throw new DeputeError(ErrorReason.KEY_NOT_USABLE, `the key is ${state}`, {
    metadata: { key: key.id, state },
  });
}
