import { ManualClock } from "@depute/core";
import { describe, expect, test } from "vitest";
import { Definitions } from "./definitions.ts";
import { type Json, tool } from "./testing/parts.ts";

/** Creates the Definitions of a fake server. The test sets the lists that the server returns. */
function definitionsWith(options: { ttlMs?: number; trustsPromises?: boolean } = {}) {
  const clock = new ManualClock(0);
  const state = { tools: [tool("report")] as Json[], ttlMs: undefined as number | undefined };
  const counts = { lists: 0, notices: 0 };
  let isAnnounced = false;
  let hold: Promise<void> | undefined;
  const definitions = new Definitions({
    list: "tools",
    clock,
    ttlMs: 0,
    trustsPromises: false,
    ...options,
    isAnnounced: () => isAnnounced,
    async page() {
      counts.lists++;
      const answer = { ...state };
      await hold;
      return answer;
    },
    onChanged: () => {
      counts.notices++;
    },
  });
  return {
    clock,
    state,
    counts,
    definitions,
    announce: (stands: boolean) => {
      isAnnounced = stands;
    },
    /**
     * Delays the responses to list requests that begin after this call.
     *
     * @returns a function that releases the responses
     */
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      hold = promise;
      return () => {
        hold = undefined;
        resolve();
      };
    },
  };
}

describe("the current definition", () => {
  test("is listed before each use", async () => {
    const { definitions, state, counts } = definitionsWith();
    const before = await definitions.currentDigest("report");
    state.tools = [tool("report", "does something else")];
    expect(await definitions.currentDigest("report")).not.toBe(before);
    expect(counts.lists).toBe(2);
  });

  test("is listed after each request for it, also during another list", async () => {
    const { definitions, state, counts, hold } = definitionsWith();
    const release = hold();
    const first = definitions.currentDigest("report");
    state.tools = [tool("report", "does something else")];
    const later = [definitions.currentDigest("report"), definitions.currentDigest("report")];
    release();
    const [second, third] = await Promise.all(later);
    expect(second).not.toBe(await first);
    expect(third).toBe(second);
    expect(counts.lists).toBe(2);
  });

  test("is cached for the configured time, and at most until an announcement", async () => {
    const { definitions, clock, counts } = definitionsWith({ ttlMs: 1000 });
    await definitions.currentDigest("report");
    clock.advance(999);
    await definitions.currentDigest("report");
    expect(counts.lists).toBe(1);
    clock.advance(1);
    await definitions.currentDigest("report");
    expect(counts.lists).toBe(2);
    definitions.forget();
    await definitions.currentDigest("report");
    expect(counts.lists).toBe(3);
  });

  test.each([
    [false, 2],
    [true, 1],
  ])("is cached for the server's own time if its promises are trusted: %j", async (trusts, lists) => {
    const { definitions, state, counts } = definitionsWith({ trustsPromises: trusts });
    state.ttlMs = 1000;
    await definitions.currentDigest("report");
    await definitions.currentDigest("report");
    expect(counts.lists).toBe(lists);
  });

  test("is cached while a trusted subscription is open", async () => {
    const { definitions, announce, clock, counts } = definitionsWith({ trustsPromises: true });
    announce(true);
    await definitions.currentDigest("report");
    clock.advance(86_400_000);
    await definitions.currentDigest("report");
    expect(counts.lists).toBe(1);
    announce(false);
    await definitions.currentDigest("report");
    expect(counts.lists).toBe(2);
  });

  test("is listed again if a change is announced during the list", async () => {
    const { definitions, state, counts, hold } = definitionsWith();
    const release = hold();
    const pendingDigest = definitions.currentDigest("report");
    state.tools = [tool("report", "does something else")];
    definitions.forget();
    release();
    expect(await pendingDigest).toBe(await definitions.currentDigest("report"));
    expect(counts.lists).toBe(3);
  });

  test("is absent if the server lists none, or one without a canonical form", async () => {
    const { definitions, state } = definitionsWith();
    state.tools = [tool("odd", "\ud800")];
    expect([await definitions.currentDigest("report"), await definitions.currentDigest("odd")]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe("a change", () => {
  test("is recorded, even if the old definition returns", async () => {
    const { definitions, state } = definitionsWith();
    await definitions.currentDigest("report");
    expect(definitions.hasChanged("report")).toBe(false);
    definitions.note([tool("report", "does something else")]);
    definitions.note(state.tools);
    expect(definitions.hasChanged("report")).toBe(true);
  });

  test("is assumed once more names were listed than the cache holds", () => {
    const { definitions } = definitionsWith();
    definitions.note(Array.from({ length: 10_001 }, (_, i) => tool(`t${i}`)));
    expect(definitions.hasChanged("t0")).toBe(true);
  });

  test("notifies clients, but at most as often as they can list", async () => {
    const { definitions, state, clock, counts } = definitionsWith();
    await definitions.currentDigest("report");
    for (let i = 0; i < 10; i++) {
      state.tools = [tool("report", `at ${i}`)];
      await definitions.currentDigest("report");
    }
    expect(counts.notices).toBe(1);
    clock.advance(10_000);
    state.tools = [];
    await definitions.currentDigest("report");
    expect(counts.notices).toBe(2);
  });
});
