import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Bus, OnError } from "../bus.ts";

const WAIT = { interval: 5, timeout: 5_000 };
const PROBE = "probe";

export interface ReceivedKeys {
  /** The keys of the wake-ups received so far, except PROBE and ALL_KEYS. */
  readonly keys: string[];
  unsubscribe(): void;
}

/** Subscribes `listener` to the topic. Resolves once a wake-up of `publisher` has arrived. */
export async function subscribeAndProbe(publisher: Bus, listener: Bus, topic: string): Promise<ReceivedKeys> {
  const all: string[] = [];
  const unsubscribe = listener.subscribe(topic, (key) => all.push(key));
  await vi.waitFor(() => {
    publisher.publish(topic, PROBE);
    expect(all).toContain(PROBE);
  }, WAIT);
  return {
    get keys() {
      return all.filter((key) => key !== PROBE && key !== "");
    },
    unsubscribe,
  };
}

/**
 * Tests the behaviour of every bus.
 *
 * @param open returns two ends of one bus, which may be the same bus object
 * @param longestKey the number of characters in the longest key that the bus carries
 */
export function busSuite(
  open: (onError: OnError) => { local: Bus; remote: Bus },
  { longestKey = 10_000 } = {},
): void {
  const opened: Bus[] = [];
  const setUp = () => {
    const onError = vi.fn<OnError>();
    const ends = open(onError);
    opened.push(ends.local, ends.remote);
    // The topic is unique, because several test files may share one Redis.
    return { ...ends, onError, topic: `test-${randomUUID()}` };
  };
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus.close()));
  });

  describe("bus", () => {
    test("wakes every listener of the topic, at both ends", async () => {
      const { local, remote, topic } = setUp();
      const received = [
        await subscribeAndProbe(local, local, topic),
        await subscribeAndProbe(local, remote, topic),
        await subscribeAndProbe(remote, remote, topic),
      ];
      local.publish(topic, "a");
      remote.publish(topic, "b");
      await vi.waitFor(() => {
        for (const one of received) expect(one.keys.toSorted()).toEqual(["a", "b"]);
      }, WAIT);
    });

    test("wakes no listener of another topic", async () => {
      const { local, remote, topic } = setUp();
      const one = await subscribeAndProbe(local, remote, topic);
      const other = await subscribeAndProbe(local, remote, `${topic}-other`);
      local.publish(`${topic}-other`, "a");
      local.publish(topic, "b");
      await vi.waitFor(() => expect([one.keys, other.keys]).toEqual([["b"], ["a"]]), WAIT);
    });

    test("carries any text as a key", async () => {
      const { local, remote, topic } = setUp();
      const received = await subscribeAndProbe(local, remote, topic);
      const keys = ["ü", "🙂", "a b\r\nc", "x".repeat(longestKey), "\0"];
      for (const key of keys) local.publish(topic, key);
      await vi.waitFor(() => expect(received.keys).toEqual(keys), WAIT);
    });

    test("merges equal wake-ups of one turn", async () => {
      const { local, remote, topic } = setUp();
      const received = await subscribeAndProbe(local, remote, topic);
      for (const key of ["a", "b", "a", "a", "b", "end"]) local.publish(topic, key);
      await vi.waitFor(() => expect(received.keys).toContain("end"), WAIT);
      expect(received.keys).toEqual(["a", "b", "end"]);
    });

    test("never calls a listener inside publish", async () => {
      const { local, topic } = setUp();
      const received = await subscribeAndProbe(local, local, topic);
      local.publish(topic, "a");
      expect(received.keys).toEqual([]);
      await vi.waitFor(() => expect(received.keys).toEqual(["a"]), WAIT);
    });

    test("keeps a listener's exception from the publisher and from the other listeners", async () => {
      const { local, remote, topic, onError } = setUp();
      const failure = new Error("no");
      remote.subscribe(topic, () => {
        throw failure;
      });
      const received = await subscribeAndProbe(local, remote, topic);
      local.publish(topic, "a");
      await vi.waitFor(() => expect(received.keys).toEqual(["a"]), WAIT);
      expect(onError).toHaveBeenCalledWith(failure, `a listener of topic ${topic} threw`);
    });

    test("calls no listener after it left, and still calls the others", async () => {
      const { local, remote, topic } = setUp();
      const ended = await subscribeAndProbe(local, remote, topic);
      const stays = await subscribeAndProbe(local, remote, topic);
      ended.unsubscribe();
      ended.unsubscribe();
      local.publish(topic, "a");
      await vi.waitFor(() => expect(stays.keys).toEqual(["a"]), WAIT);
      expect(ended.keys).toEqual([]);
    });

    test("accepts a new listener of a topic after its last listener left", async () => {
      const { local, remote, topic } = setUp();
      (await subscribeAndProbe(local, remote, topic)).unsubscribe();
      const again = await subscribeAndProbe(local, remote, topic);
      local.publish(topic, "a");
      await vi.waitFor(() => expect(again.keys).toEqual(["a"]), WAIT);
    });

    test("calls no listener after close, and does not throw", async () => {
      const { local, remote, topic } = setUp();
      const received = await subscribeAndProbe(local, remote, topic);
      await remote.close();
      await remote.close();
      remote.publish(topic, "a");
      local.publish(topic, "b");
      remote.subscribe(topic, () => expect.unreachable())();
      await local.close();
      expect(received.keys).toEqual([]);
    });
  });
}
