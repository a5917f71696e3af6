import { ManualClock } from "@depute/core";
import { SealedSecrets } from "@depute/service";
import { cellsOf } from "@depute/store/testing";
import { createLocalJWKSet, jwtVerify } from "jose";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JwtKeys } from "./jwt-keys.ts";
import { dueKeys, PUBLISHED_AFTER_MS, PUBLISHED_AHEAD_MS, signingKey } from "./rules/jwt-keys.ts";
import { openMemory } from "./testing/parts.ts";

const DAY_MS = 86_400_000;
const clock = new ManualClock();
let store: Awaited<ReturnType<typeof openMemory>>;
let keys: JwtKeys;
const openKeys = (byte = 7) =>
  new JwtKeys({
    store,
    clock,
    secrets: new SealedSecrets(new Uint8Array(32).fill(byte)),
    maxAgeMs: 30 * DAY_MS,
  });

beforeEach(async () => {
  store = await openMemory();
  keys = openKeys();
});
afterEach(() => store.close());

const kids = async () => (await keys.published()).map(({ kid }) => kid);
const verify = async (jwt: string, jwks: Awaited<ReturnType<typeof keys.published>>) =>
  jwtVerify(jwt, createLocalJWKSet({ keys: jwks }), { currentDate: new Date(clock.now()) });
const sign = () => keys.sign({ sub: "ada", exp: Math.floor(clock.now() / 1000) + 300 });

describe("the signing keys", () => {
  it("rotate so that each token verifies with the keys that a server has read", async () => {
    const [first] = await kids();
    clock.advance(30 * DAY_MS - PUBLISHED_AHEAD_MS - 1);
    expect(await kids()).toEqual([first]);
    clock.advance(1);
    const early = await keys.published();
    expect(early.map(({ kid }) => kid)).toEqual([first, expect.not.stringMatching(`^${first}$`)]);
    expect((await verify(await sign(), early)).protectedHeader.kid).toBe(first);

    clock.advance(PUBLISHED_AHEAD_MS - 1);
    const last = await sign();
    clock.advance(1);
    // From this time on, the successor signs. The server has read the successor's public key an hour earlier, with the
    // set `early`.
    const successor = await verify(await sign(), early);
    expect(successor.protectedHeader.kid).toBe(early[1]?.kid);
    expect((await verify(last, await keys.published())).protectedHeader.kid).toBe(first);

    clock.advance(PUBLISHED_AFTER_MS);
    expect(await kids()).toEqual([early[1]?.kid]);
  });

  it("stay over a restart, sealed", async () => {
    const jwt = await sign();
    keys = openKeys();
    expect((await verify(jwt, await keys.published())).payload.sub).toBe("ada");
    expect((await verify(await sign(), await keys.published())).payload.sub).toBe("ada");
    const published = JSON.stringify(await keys.published());
    expect(published).not.toContain('"d"');
    expect((await cellsOf(store)).some((cell) => cell.includes('"d"'))).toBe(false);
    await expect(openKeys(8).sign({})).rejects.toThrow("master key");
  });

  it("are made once by concurrent calls", async () => {
    await Promise.all([sign(), sign(), keys.published(), openKeys().published()]);
    expect(await kids()).toHaveLength(1);
  });
});

describe("the due work", () => {
  it("creates one successor after a long pause, which others can read before it signs", () => {
    const old = [{ kid: "a", activateTime: 0 }];
    const now = 400 * DAY_MS;
    expect(dueKeys(old, now, 30 * DAY_MS)).toEqual({ create: now + PUBLISHED_AHEAD_MS, forget: [] });
    const both = [...old, { kid: "b", activateTime: now + PUBLISHED_AHEAD_MS }];
    expect(dueKeys(both, now, 30 * DAY_MS)).toEqual({ create: undefined, forget: [] });
    expect(signingKey(both, now)?.kid).toBe("a");
  });
});
