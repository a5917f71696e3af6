import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { denialOf, isAllowed, typeOf } from "../testing/decisions.ts";
import { alice, mint, prove, READ, readFile, requirePresent, SEARCH, verify } from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

describe("VerifyToken for several capabilities", () => {
  const ask = async (alsoRequested: (typeof READ)[], more: object = {}) => {
    const { token } = await mint(platform);
    return verify(platform, token, alice, { alsoRequested, ...more });
  };

  it("allows a request that is granted completely, with one proof", async () => {
    expect(await isAllowed(ask([readFile("/project/a"), { ...SEARCH, resource: "x" }]))).toBe(true);
  });

  it("denies a partly granted request, names the missing one, and uses the proof up", async () => {
    const { token } = await mint(platform);
    const jwt = prove(platform, alice, { token: requirePresent(token).token });
    const request = { jwt, alsoRequested: [readFile("/project/a"), readFile("/secret")] };
    const denial = await denialOf(verify(platform, token, alice, request));
    expect(denial).toMatchObject({
      type: DenialType.CAPABILITY_NOT_GRANTED,
      requested: { resource: "/secret" },
      granted: { capabilities: [READ, SEARCH] },
    });
    expect(await typeOf(verify(platform, token, alice, { jwt }))).toBe(DenialType.REPLAYED_PROOF);
  });

  it("denies the first capability before the others", async () => {
    const first = { requested: readFile("/elsewhere") };
    expect(await denialOf(ask([readFile("/project/../x")], first))).toMatchObject({
      requested: { resource: "/elsewhere" },
    });
    expect(await typeOf(ask([readFile("/project/../x")]))).toBe(DenialType.INVALID_RESOURCE);
  });

  it("accepts 64 capabilities", async () => {
    const more = Array.from({ length: 63 }, (_, n) => readFile(`/project/${n}`));
    expect(await isAllowed(ask(more))).toBe(true);
    expect((await refusal(ask([...more, readFile()]))).reason).toBe("INVALID_REQUEST");
  });
});
