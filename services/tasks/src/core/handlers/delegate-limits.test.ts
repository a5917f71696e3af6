import { afterEach, describe, expect, it } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";

let bench: Bench;
afterEach(() => bench.close());

const set = (principal: string, limits: object) =>
  bench.workers.setDelegateLimits({ agentId: "bob", limits }, asCaller(principal));

describe("an agent's own limits", () => {
  it.each<[string, object, object, boolean]>([
    ["a first bound", {}, { maxHeld: 5 }, true],
    ["a lower bound", { maxHeld: 5 }, { maxHeld: 4 }, true],
    ["the same bound", { maxHeld: 5 }, { maxHeld: 5 }, true],
    ["draining, and its end", { maxHeld: 5, draining: true }, { maxHeld: 5 }, true],
    ["a higher bound", { maxHeld: 5 }, { maxHeld: 6 }, false],
    ["a removed bound", { maxHeld: 5 }, {}, false],
    ["a higher bound, with draining", { maxHeld: 5 }, { maxHeld: 6, draining: true }, false],
  ])("%s: the agent itself can set it only if it is not wider", async (_, before, after, isAccepted) => {
    bench = await openBench(undefined, ["the-operator"]);
    await set(BOB, before);
    if (isAccepted) await set(BOB, after);
    else {
      expect(await refusal(set(BOB, after))).toMatchObject({
        reason: "AGENT_BOUNDS_WIDENED",
        fields: ["limits.max_held"],
        metadata: { agent: "bob", widenings: "1" },
      });
      expect((await bench.workers.getDelegateLimits({ agentId: "bob" }, asCaller(BOB))).limits).toMatchObject(
        before,
      );
    }
    await set("the-operator", after);
  });

  it("can be widened by the agent itself on an open loopback without operators", async () => {
    bench = await openBench();
    await set(BOB, { maxHeld: 5 });
    await set(BOB, {});
  });
});
