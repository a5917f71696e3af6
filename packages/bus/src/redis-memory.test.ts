import { randomUUID } from "node:crypto";
import { systemClock, systemTimers } from "@depute/core";
import { Redis } from "ioredis";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import type { OnError } from "./bus.ts";
import { MemoryAwayError, type MemoryEntry } from "./memory.ts";
import { RedisMemory } from "./redis-memory.ts";
import { redisForTests, startRedis } from "./testing/redis-server.ts";
import { tcpProxy } from "./testing/tcp-proxy.ts";

const redis = await redisForTests();
afterAll(() => redis?.stop());

const AMPLE = { bytes: 1_000, number: 100, ofOwner: 100 };

describe.skipIf(redis === undefined)("memory over Redis", () => {
  const opened: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });
  const open = (namespace = randomUUID(), url = redis?.url ?? "") => {
    const onError = vi.fn<OnError>();
    const memory = new RedisMemory({
      ...{ url, namespace, onError },
      ...{ clock: systemClock, timers: systemTimers },
    });
    opened.push(memory);
    return memory;
  };
  /** Returns the memories of two processes with one namespace, and a stock Redis client. */
  const two = () => {
    const namespace = randomUUID();
    const stock = new Redis(redis?.url ?? "");
    opened.push({ close: () => stock.disconnect() });
    return { a: open(namespace), b: open(namespace), stock, prefix: `depute:{${namespace}}:` };
  };
  const entry = (id: string, more: Partial<MemoryEntry> = {}): MemoryEntry => ({
    ...{ id, value: `value of ${id}`, bytes: 10, expireMs: Date.now() + 60_000 },
    ...more,
  });

  test("a value of one process is read by another, and removed for both", async () => {
    const { a, b } = two();
    expect(await a.add("owner", [entry("1"), entry("2")], AMPLE)).toBeUndefined();
    expect(await b.get(["2", "none", "1"])).toEqual(["value of 2", undefined, "value of 1"]);
    await b.remove(["1", "none"]);
    await b.remove(["1"]);
    expect(await a.get(["1", "2"])).toEqual([undefined, "value of 2"]);
  });

  test("another namespace has no values of the first, and its own limits", async () => {
    const [a, b] = [open(), open()];
    await a.add("owner", [entry("1")], { ...AMPLE, number: 1 });
    expect(await b.get(["1"])).toEqual([undefined]);
    expect(await b.add("owner", [entry("1")], { ...AMPLE, number: 1 })).toBeUndefined();
  });

  test.each([
    ["bytes", { ...AMPLE, bytes: 25 }],
    ["number", { ...AMPLE, number: 2 }],
    ["ofOwner", { ...AMPLE, ofOwner: 2 }],
  ] as const)(
    "%s: the entries of all processes count, and a call adds all or none",
    async (limit, limits) => {
      const { a, b } = two();
      expect(await a.add("owner", [entry("1")], limits)).toBeUndefined();
      expect(await b.add("owner", [entry("2"), entry("3")], limits)).toBe(limit);
      expect(await b.get(["2", "3"])).toEqual([undefined, undefined]);
      expect(await b.add("owner", [entry("2")], limits)).toBeUndefined();
      expect(await a.add("owner", [entry("3")], limits)).toBe(limit);
      expect(await a.add("another", [entry("3")], limits)).toBe(limit === "ofOwner" ? undefined : limit);
      await a.remove(["1", "3"]);
      expect(await a.add("owner", [entry("4")], limits)).toBeUndefined();
    },
  );

  test("concurrent calls of two processes never exceed a limit together", async () => {
    const { a, b } = two();
    const calls = Array.from({ length: 40 }, (_, n) =>
      (n % 2 === 0 ? a : b).add("owner", [entry(`${n}`)], { ...AMPLE, number: 15 }),
    );
    expect((await Promise.all(calls)).filter((limit) => limit === undefined)).toHaveLength(15);
  });

  test("a value expires by itself, and frees its space", async () => {
    const { a, b, stock, prefix } = two();
    const limits = { ...AMPLE, number: 1 };
    await a.add("owner", [entry("1", { expireMs: Date.now() + 80 })], limits);
    expect(await stock.pttl(`${prefix}v:1`)).toBeLessThanOrEqual(80);
    await expect.poll(() => b.get(["1"])).toEqual([undefined]);
    await expect.poll(() => b.add("owner", [entry("2")], limits)).toBeUndefined();
  });

  test("a repeated entry replaces the earlier one, and counts once", async () => {
    const { a, b } = two();
    for (const bytes of [10, 20]) await a.add("owner", [entry("1", { bytes })], { ...AMPLE, number: 1 });
    expect(await b.add("owner", [entry("2", { bytes: 980 })], AMPLE)).toBeUndefined();
    expect(await b.add("owner", [entry("3", { bytes: 1 })], AMPLE)).toBe("bytes");
  });

  test("the list has every entry with its time", async () => {
    const { a, b } = two();
    const beforeMs = Date.now();
    const ids = Array.from({ length: 700 }, (_, n) => `id-${n}`);
    await a.add(
      "owner",
      ids.map((id) => entry(id, { bytes: 1 })),
      { ...AMPLE, number: 700, ofOwner: 700 },
    );
    const listed = new Map<string, number>();
    let cursor = "0";
    do {
      const page = await b.list(cursor);
      for (const { id, addMs } of page.entries) listed.set(id, addMs);
      cursor = page.next;
    } while (cursor !== "0");
    expect([...listed.keys()].toSorted()).toEqual(ids.toSorted());
    for (const addMs of listed.values()) expect(addMs).toBeGreaterThanOrEqual(beforeMs);
  });

  test.each(["expiry", "entries", "use"])(
    "after the loss of the key `%s` in Redis, entries are evicted and the sums are correct again",
    async (key) => {
      const { a, b, stock, prefix } = two();
      await a.add("owner", [entry("1"), entry("2")], AMPLE);
      await stock.del(prefix + key);
      expect(await b.add("owner", [entry("3")], { ...AMPLE, number: 1 })).toBeUndefined();
      expect(await b.get(["1", "2", "3"])).toEqual([undefined, undefined, "value of 3"]);
      expect(await b.add("owner", [entry("4")], { ...AMPLE, number: 1 })).toBe("number");
    },
  );

  test("a restart of Redis loses the values and no call: the next calls find space", async () => {
    const own = await startRedis();
    const memory = open(randomUUID(), own.url);
    const limits = { ...AMPLE, number: 1 };
    await memory.add("owner", [entry("1")], limits);
    await own.stop();
    const again = await startRedis(Number(new URL(own.url).port));
    try {
      await expect.poll(() => memory.get(["1"]).catch(() => "away")).toEqual([undefined]);
      expect(await memory.add("owner", [entry("2")], limits)).toBeUndefined();
    } finally {
      await memory.close();
      await again.stop();
    }
  });

  test("while Redis is unavailable, calls fail within a second, then at once, and later succeed", async () => {
    const address = new URL(redis?.url ?? "");
    const proxy = await tcpProxy({ host: address.hostname, port: Number(address.port || 6379) });
    const memory = open(randomUUID(), `redis://127.0.0.1:${proxy.port}`);
    await memory.add("owner", [entry("1")], AMPLE);
    expect(memory.isAway).toBe(false);
    await proxy.cut();
    await expect.poll(() => memory.isAway).toBe(true);
    await expect(memory.get(["1"])).rejects.toThrow(MemoryAwayError);
    const beganMs = performance.now();
    await expect(memory.get(["1"])).rejects.toThrow(MemoryAwayError);
    expect(performance.now() - beganMs).toBeLessThan(100);
    await proxy.restore();
    await expect
      .poll(() => memory.get(["1"]).catch(() => "away"), { timeout: 10_000 })
      .toEqual(["value of 1"]);
    await memory.close();
    await expect(memory.get(["1"])).rejects.toThrow("closed");
    await proxy.cut();
  });
});
