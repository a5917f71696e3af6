import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { denialOf, isAllowed, typeOf } from "../testing/decisions.ts";
import { alice, given, mint, prove, READ, readFile, SEARCH, verify } from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

describe("VerifyToken of several things at once", () => {
  const ask = async (alsoRequested: (typeof READ)[], more: object = {}) => {
    const { token } = await mint(platform);
    return verify(platform, token, alice, { alsoRequested, ...more });
  };

  it("allows what is granted in all, with one proof", async () => {
    expect(await isAllowed(ask([readFile("/project/a"), { ...SEARCH, resource: "x" }]))).toBe(true);
  });

  it("denies what is granted in part, says of what, and uses the proof up", async () => {
    const { token } = await mint(platform);
    const jwt = prove(platform, alice, { token: given(token).token });
    const asked = { jwt, alsoRequested: [readFile("/project/a"), readFile("/secret")] };
    const denial = await denialOf(verify(platform, token, alice, asked));
    expect(denial).toMatchObject({
      type: DenialType.CAPABILITY_NOT_GRANTED,
      requested: { resource: "/secret" },
      granted: { capabilities: [READ, SEARCH] },
    });
    expect(await typeOf(verify(platform, token, alice, { jwt }))).toBe(DenialType.REPLAYED_PROOF);
  });

  it("gives a denial of the first before one of the rest", async () => {
    const first = { requested: readFile("/elsewhere") };
    expect(await denialOf(ask([readFile("/project/../x")], first))).toMatchObject({
      requested: { resource: "/elsewhere" },
    });
    expect(await typeOf(ask([readFile("/project/../x")]))).toBe(DenialType.INVALID_RESOURCE);
  });

  it("takes 64 in all", async () => {
    const more = Array.from({ length: 63 }, (_, n) => readFile(`/project/${n}`));
    expect(await isAllowed(ask(more))).toBe(true);
    expect((await refusal(ask([...more, readFile()]))).reason).toBe("INVALID_REQUEST");
  });
});
