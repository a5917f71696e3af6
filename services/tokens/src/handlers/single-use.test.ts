import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { denialOf, isAllowed, typeOf } from "../testing/decisions.ts";
import {
  alice,
  attenuate,
  bob,
  carol,
  engine,
  id,
  mint,
  newRequest,
  readFile,
  requirePresent,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const once = async () => requirePresent((await mint(platform, { binding: { singleUse: true } })).token);

describe("a single-use token", () => {
  it("is allowed once, also under concurrency and after a restart", async () => {
    const token = await once();
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () => isAllowed(verify(platform, token, alice))),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    const denied = { type: DenialType.REPLAYED_PROOF, detail: "the single-use token was used before" };
    expect(await denialOf(verify(platform, token, alice))).toMatchObject(denied);
    await platform.restart();
    expect(await denialOf(verify(platform, token, alice))).toMatchObject(denied);
  });

  it("is not used up by denials, inspections or reservations", async () => {
    const token = await once();
    const requested = readFile("/elsewhere");
    expect(await typeOf(verify(platform, token, alice, { requested }))).toBe(
      DenialType.CAPABILITY_NOT_GRANTED,
    );
    expect(await typeOf(verify(platform, token, bob))).toBe(DenialType.INVALID_PROOF);
    expect((await platform.tokens.inspectToken({ token })).result.case).toBe("scope");
    await platform.spend.reserveSpend({ requestId: newRequest(), token, amountMicrocents: 1n });
    expect(await isAllowed(verify(platform, token, alice))).toBe(true);
  });

  it("shares its one use with all tokens below it", async () => {
    const token = await once();
    const [first, second] = [
      await attenuate(platform, token, alice, bob),
      await attenuate(platform, token, alice, carol),
    ];
    expect(await isAllowed(verify(platform, first.token, bob))).toBe(true);
    expect(await typeOf(verify(platform, second.token, carol))).toBe(DenialType.REPLAYED_PROOF);
    expect(await typeOf(verify(platform, token, alice))).toBe(DenialType.REPLAYED_PROOF);
  });

  it("leaves its multi-use parent valid", async () => {
    const { token } = (await mint(platform)) as { token: SerializedDCT };
    const { attenuation, digest } = await platform.tokens.prepareAttenuation({
      ...{ token, attenuation: { delegatee: id(bob) } },
    });
    const narrowed = await platform.tokens.attenuateToken({
      ...{ token, attenuation: requirePresent(attenuation), binding: { singleUse: true } },
      signature: engine.sign(digest, alice.privateKey),
    });
    expect(await isAllowed(verify(platform, narrowed.token, bob))).toBe(true);
    expect(await typeOf(verify(platform, narrowed.token, bob))).toBe(DenialType.REPLAYED_PROOF);
    expect(await isAllowed(verify(platform, token, alice))).toBe(true);
    const below = await attenuate(platform, await once(), alice, carol);
    const text = requirePresent(below.token);
    expect(await isAllowed(verify(platform, text, carol))).toBe(true);
  });
});
