import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Bus, OnError } from "../bus.ts";

const WAIT = { interval: 5, timeout: 5_000 };
const PROBE = "probe";

export interface HeardKeys {
  /** What was heard so far, without the probe and LOOK_AT_EVERYTHING. */
  readonly keys: string[];
  unsubscribe(): void;
}

/** Subscribes, and resolves when a wake-up from `publisher` is known to arrive. */
export async function hear(publisher: Bus, listener: Bus, topic: string): Promise<HeardKeys> {
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

/** What every bus does. `open` gives two ends of one bus, which may be the same object. */
export function busSuite(open: (onError: OnError) => { here: Bus; there: Bus }): void {
  const opened: Bus[] = [];
  const setUp = () => {
    const onError = vi.fn<OnError>();
    const ends = open(onError);
    opened.push(ends.here, ends.there);
    // Several test files may share one Redis.
    return { ...ends, onError, topic: `test-${randomUUID()}` };
  };
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus.close()));
  });

  describe("bus", () => {
    test("wakes every listener of the topic, at both ends", async () => {
      const { here, there, topic } = setUp();
      const heard = [
        await hear(here, here, topic),
        await hear(here, there, topic),
        await hear(there, there, topic),
      ];
      here.publish(topic, "a");
      there.publish(topic, "b");
      await vi.waitFor(() => {
        for (const one of heard) expect(one.keys.toSorted()).toEqual(["a", "b"]);
      }, WAIT);
    });

    test("wakes nobody of another topic", async () => {
      const { here, there, topic } = setUp();
      const one = await hear(here, there, topic);
      const other = await hear(here, there, `${topic}-other`);
      here.publish(`${topic}-other`, "a");
      here.publish(topic, "b");
      await vi.waitFor(() => expect([one.keys, other.keys]).toEqual([["b"], ["a"]]), WAIT);
    });

    test("carries any text as key", async () => {
      const { here, there, topic } = setUp();
      const heard = await hear(here, there, topic);
      const keys = ["ü", "🙂", "a b\r\nc", "x".repeat(10_000), "\0"];
      for (const key of keys) here.publish(topic, key);
      await vi.waitFor(() => expect(heard.keys).toEqual(keys), WAIT);
    });

    test("merges equal wake-ups of one turn", async () => {
      const { here, there, topic } = setUp();
      const heard = await hear(here, there, topic);
      for (const key of ["a", "b", "a", "a", "b", "end"]) here.publish(topic, key);
      await vi.waitFor(() => expect(heard.keys).toContain("end"), WAIT);
      expect(heard.keys).toEqual(["a", "b", "end"]);
    });

    test("never calls a listener inside publish", async () => {
      const { here, topic } = setUp();
      const heard = await hear(here, here, topic);
      here.publish(topic, "a");
      expect(heard.keys).toEqual([]);
      await vi.waitFor(() => expect(heard.keys).toEqual(["a"]), WAIT);
    });

    test("keeps a listener's exception from the publisher and from the other listeners", async () => {
      const { here, there, topic, onError } = setUp();
      const failure = new Error("no");
      there.subscribe(topic, () => {
        throw failure;
      });
      const heard = await hear(here, there, topic);
      here.publish(topic, "a");
      await vi.waitFor(() => expect(heard.keys).toEqual(["a"]), WAIT);
      expect(onError).toHaveBeenCalledWith(failure, `a listener of topic ${topic} threw`);
    });

    test("does not call a listener after it left, and calls the one that stays", async () => {
      const { here, there, topic } = setUp();
      const gone = await hear(here, there, topic);
      const stays = await hear(here, there, topic);
      gone.unsubscribe();
      gone.unsubscribe();
      here.publish(topic, "a");
      await vi.waitFor(() => expect(stays.keys).toEqual(["a"]), WAIT);
      expect(gone.keys).toEqual([]);
    });

    test("a topic can be listened to again after its last listener left", async () => {
      const { here, there, topic } = setUp();
      (await hear(here, there, topic)).unsubscribe();
      const again = await hear(here, there, topic);
      here.publish(topic, "a");
      await vi.waitFor(() => expect(again.keys).toEqual(["a"]), WAIT);
    });

    test("after close nothing is heard, and nothing throws", async () => {
      const { here, there, topic } = setUp();
      const heard = await hear(here, there, topic);
      await there.close();
      await there.close();
      there.publish(topic, "a");
      here.publish(topic, "b");
      there.subscribe(topic, () => expect.unreachable())();
      await here.close();
      expect(heard.keys).toEqual([]);
    });
  });
}
