import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { ErrorReason } from "@depute/core";
import { fromConnectError } from "@depute/service";
import { as, TickingClock } from "@depute/service/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { typeOf } from "../testing/decisions.ts";
import {
  alice,
  bob,
  CALL,
  carol,
  id,
  mallory,
  mint,
  prove,
  readFile,
  requirePresent,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";

/** Milliseconds that each verification takes by the clock of the service. */
const TICK_MS = 0.05;

/** A service on which each principal may use one millisecond of processor time a second. */
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform(
    ["--revocation-max-staleness", "24h"],
    ["--quota-verification-cpu", "1"],
    [id(carol)],
    new TickingClock(TICK_MS),
  );
});
afterAll(() => platform.stop());
beforeEach(() => platform.clock.advance(3_600_000));

const USED = {
  reason: ErrorReason.LIMIT_EXCEEDED,
  metadata: {
    limit: "principal_verification_cpu_ms_per_second",
    max: "1",
    retry_after_ms: expect.stringMatching(/^\d+$/),
  },
};
const refusalOf = (call: Promise<unknown>) => call.then(() => undefined, fromConnectError);

/** Repeats a call until the service refuses it. */
async function untilRefused(call: () => Promise<unknown>) {
  for (let i = 0; i < 200; i++) {
    const refusal = await refusalOf(call());
    if (refusal !== undefined) return refusal;
  }
  throw new Error("no call was refused");
}

const verifyProof = (holder: typeof alice) =>
  platform.tokens.verifyProof({
    proof: { jwt: prove(platform, holder), method: CALL.htm, target: CALL.htu },
  });

test("the holder of a token pays for its verification, and no other holder", async () => {
  const { token } = (await mint(platform)) as { token: SerializedDCT };
  const refusal = await untilRefused(() => verify(platform, token, alice));
  expect(refusal).toMatchObject(USED);
  const other = await mint(platform, { delegatee: id(bob) });
  expect((await verify(platform, other.token, bob)).result).toMatchObject({ case: "scope" });
  platform.clock.advance(Number(refusal.metadata.retry_after_ms));
  expect((await verify(platform, token, alice)).result).toMatchObject({ case: "scope" });
});

test("the holder of a key pays for the verification of its proofs", async () => {
  expect(await untilRefused(() => verifyProof(alice))).toMatchObject(USED);
  expect((await verifyProof(bob)).result.case).toBe("principal");
});

test("a stranger with a forged proof uses no quota, and does not learn that a quota is used", async () => {
  const { token } = (await mint(platform)) as { token: SerializedDCT };
  const forged = () => prove(platform, mallory, { token: requirePresent(token).token });
  for (let i = 0; i < 100; i++)
    expect(await typeOf(verify(platform, token, alice, { jwt: forged() }))).toBe(DenialType.INVALID_PROOF);
  expect((await verify(platform, token, alice)).result).toMatchObject({ case: "scope" });
  await untilRefused(() => verify(platform, token, alice));
  expect(await typeOf(verify(platform, token, alice, { jwt: forged() }))).toBe(DenialType.INVALID_PROOF);
});

test("a caller with a secret pays for the tokens that it has verified, and their holders do not", async () => {
  const { token } = (await mint(platform)) as { token: SerializedDCT };
  const verifyFor = (caller: object) =>
    platform.tokens.verifyToken(
      {
        token,
        requested: readFile(),
        proof: { jwt: prove(platform, alice, { token: token.token }), method: CALL.htm, target: CALL.htu },
      },
      caller,
    );
  expect(await untilRefused(() => verifyFor(as(id(carol))))).toMatchObject(USED);
  expect((await verify(platform, token, alice)).result).toMatchObject({ case: "scope" });
});
