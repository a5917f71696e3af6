import { ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import {
  assertUsable,
  type KeptKeyState,
  type KeyLife,
  type KeyUse,
  keptKeyState,
  REPLACED_MS,
} from "./kept-key.ts";

const key = (state: KeyLife["state"], endTime = 0): KeyLife => ({ id: "k", state, endTime });
const ENDED = 1000;
const LIVES: Record<KeptKeyState, [KeyLife, number]> = {
  active: [key("active"), ENDED],
  replaced: [key("replaced", ENDED), ENDED + REPLACED_MS - 1],
  retired: [key("replaced", ENDED), ENDED + REPLACED_MS],
  revoked: [key("revoked", ENDED), ENDED],
};
const MAY: Record<KeptKeyState, KeyUse[]> = {
  active: ["mint", "attenuate", "prove", "revoke", "rotate"],
  replaced: ["attenuate", "prove", "revoke", "rotate"],
  retired: ["revoke", "rotate"],
  revoked: ["revoke"],
};

describe.each(Object.keys(LIVES) as KeptKeyState[])("a key that is %s", (state) => {
  const [life, now] = LIVES[state];

  it("has that state", () => {
    expect(keptKeyState(life, now)).toBe(state);
  });

  it.each(MAY.active)("allows or refuses %s by its state", (use) => {
    const run = () => assertUsable(life, use, now);
    if (MAY[state].includes(use)) return expect(run).not.toThrow();
    expect(run).toThrow(
      expect.objectContaining({
        reason: ErrorReason.KEY_NOT_USABLE,
        metadata: { key: "k", state },
      }),
    );
  });
});
