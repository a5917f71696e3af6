import { ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import {
  assertUsable,
  type KeyLife,
  type KeyStanding,
  type KeyUse,
  keyStanding,
  REPLACED_MS,
} from "./kept-key.ts";

const key = (state: KeyLife["state"], endTime = 0): KeyLife => ({ id: "k", state, endTime });
const ENDED = 1000;
const LIVES: Record<KeyStanding, [KeyLife, number]> = {
  active: [key("active"), ENDED],
  replaced: [key("replaced", ENDED), ENDED + REPLACED_MS - 1],
  retired: [key("replaced", ENDED), ENDED + REPLACED_MS],
  revoked: [key("revoked", ENDED), ENDED],
};
const MAY: Record<KeyStanding, KeyUse[]> = {
  active: ["mint", "attenuate", "prove", "revoke", "rotate"],
  replaced: ["attenuate", "prove", "revoke", "rotate"],
  retired: ["revoke", "rotate"],
  revoked: ["revoke"],
};

describe.each(Object.keys(LIVES) as KeyStanding[])("a key that is %s", (standing) => {
  const [life, now] = LIVES[standing];

  it("has that state", () => {
    expect(keyStanding(life, now)).toBe(standing);
  });

  it.each(MAY.active)("allows or refuses %s by its state", (use) => {
    const run = () => assertUsable(life, use, now);
    if (MAY[standing].includes(use)) return expect(run).not.toThrow();
    expect(run).toThrow(
      expect.objectContaining({
        reason: ErrorReason.KEY_NOT_USABLE,
        metadata: { key: "k", state: standing },
      }),
    );
  });
});
