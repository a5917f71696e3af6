import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  alice,
  attenuate,
  bob,
  engine,
  id,
  mint,
  newRequest,
  requirePresent,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const HERE = "https://depute.example";
const ELSEWHERE = "https://elsewhere.example";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform(["--token-min-lifetime", "60s", "--token-max-lifetime", "2h"]);
});
afterEach(() => platform.stop());

const outcome = async (
  token: Parameters<typeof verify>[1],
  holder: typeof alice,
  more: Record<string, unknown> = {},
) => {
  const { result } = await verify(platform, token, holder, more);
  return result.case === "denial" ? [result.value.type, result.value.detail] : "allowed";
};
const denied = (deniedFor: string) => [DenialType.CAPABILITY_NOT_GRANTED, deniedFor];

describe("a bound token", () => {
  it("is valid only for its audiences and tenants, as is everything below it", async () => {
    const { token } = await mint(platform, {
      binding: { audiences: [HERE, ELSEWHERE], tenants: ["acme", "other"] },
    });
    const forAcme = { tenant: "acme" };
    expect(await outcome(token, alice, forAcme)).toBe("allowed");
    expect(await outcome(token, alice)).toEqual(denied("tenant"));
    const { attenuation, digest } = await platform.tokens.prepareAttenuation({
      ...{ token: requirePresent(token), attenuation: { delegatee: id(bob) } },
    });
    const { token: narrowed } = await platform.tokens.attenuateToken({
      ...{ token: requirePresent(token), attenuation: requirePresent(attenuation) },
      ...{ signature: engine.sign(digest, alice.privateKey), binding: { audiences: [ELSEWHERE] } },
    });
    await platform.restart();
    expect(await outcome(narrowed, bob, forAcme)).toEqual(denied("audience"));
    const away = await mint(platform, { binding: { audiences: [ELSEWHERE] } });
    expect(await outcome(away.token, alice)).toEqual(denied("audience"));
    const below = await attenuate(platform, away.token, alice, bob);
    expect(await outcome(below.token, bob)).toEqual(denied("audience"));
  });

  it("is denied for its binding after all other denials", async () => {
    const { token } = await mint(platform, { binding: { audiences: [ELSEWHERE] } });
    const requested = { namespace: "docs", action: "read", resource: "/elsewhere" };
    expect(await outcome(token, alice, { requested })).toEqual([
      DenialType.CAPABILITY_NOT_GRANTED,
      undefined,
    ]);
  });

  it("is bound by addresses", async () => {
    const call = mint(platform, { binding: { audiences: ["elsewhere"] } });
    expect((await refusal(call)).fields).toEqual(["binding.audiences[0]"]);
  });
});

describe("a token's lifetime", () => {
  it.each([
    [59, false],
    [60, true],
    [7200, true],
    [7201, false],
  ])("of %i seconds is minted: %s", async (lifetimeSeconds, isMinted) => {
    const call = mint(platform, {
      requestId: newRequest(),
      lifetime: durationFromMs(lifetimeSeconds * 1000),
    });
    if (isMinted) expect((await call).token).toBeDefined();
    else expect((await refusal(call)).fields).toEqual(["lifetime"]);
  });
});
