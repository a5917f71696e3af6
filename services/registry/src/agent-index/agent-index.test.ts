import fc from "fast-check";
import { expect, it } from "vitest";
import { AgentIndex, type CapabilityPlace, type IndexedAgent, type IndexQuery } from "./agent-index.ts";
import { compareText } from "./text-order.ts";

const words = (prefix: string) => fc.constantFrom(...["1", "2", "3"].map((each) => prefix + each));
const capability = fc.record({ id: words("n"), category: words("k") });
const agent: fc.Arbitrary<IndexedAgent> = fc.record({
  id: fc.constantFrom("a", "b", "c", "d"),
  active: fc.boolean(),
  keys: fc.uniqueArray(words("t"), { maxLength: 3 }),
  capabilities: fc.uniqueArray(capability, { selector: ({ id }) => id, maxLength: 3 }),
});
const query = fc.record(
  { keys: fc.uniqueArray(words("t"), { maxLength: 2 }), category: words("k"), id: words("n") },
  { requiredKeys: ["keys"] },
);
const NOWHERE: CapabilityPlace = { id: "", agentId: "" };

const indexOf = (maxBytes: number, onFull = () => {}, more = {}) =>
  new AgentIndex({ maxBytes, onFull, ...more });

/** What a look at every agent finds. */
function lookUp(agents: Iterable<IndexedAgent>, { keys, category, id }: IndexQuery): CapabilityPlace[] {
  const found = [...agents]
    .filter((each) => each.active && keys.every((key) => each.keys.includes(key)))
    .flatMap((each) => each.capabilities.map((own) => ({ ...own, agentId: each.id })))
    .filter((own) => (category ?? own.category) === own.category && (id ?? own.id) === own.id)
    .map(({ id: name, agentId }) => ({ id: name, agentId }));
  return found.sort((a, b) => compareText(a.id, b.id) || compareText(a.agentId, b.agentId));
}

it.each([2_000, 1, 0])(
  "finds what a look at every agent finds, page by page, within %d steps or beyond",
  (maxSteps) => {
    fc.assert(
      fc.property(
        fc.array(agent, { maxLength: 12 }),
        query,
        fc.integer({ min: 1, max: 4 }),
        (puts, asked, size) => {
          fc.pre(asked.keys.length > 0 || asked.category !== undefined || asked.id !== undefined);
          const [index, agents] = [
            indexOf(1_000_000, undefined, { maxSteps }),
            new Map<string, IndexedAgent>(),
          ];
          for (const each of puts) {
            index.put(each);
            agents.set(each.id, each);
          }
          const all: CapabilityPlace[] = [];
          for (;;) {
            const page = index.findCapabilities(asked, all.at(-1) ?? NOWHERE, size) ?? [];
            all.push(...page);
            if (page.length < size) break;
          }
          expect(all).toEqual(lookUp(agents.values(), asked));
        },
      ),
    );
  },
);

it("finds agents by their keys, of any status, in the order of their ids", () => {
  const index = indexOf(1_000_000);
  const put = (id: string, keys: string[], active = true) =>
    index.put({ id, active, keys, capabilities: [] });
  put("b", ["tx", "py"]);
  put("c", ["tx", "py"], false);
  put("a", ["tx", "py"]);
  put("d", ["tx"]);
  expect(index.findAgents(["tx", "py"], "", 10)).toEqual(["a", "b", "c"]);
  expect(index.findAgents(["tx", "py"], "a", 1)).toEqual(["b"]);
  expect(index.findAgents(["tz"], "", 10)).toEqual([]);
  put("b", []);
  expect(index.findAgents(["tx", "py"], "", 10)).toEqual(["a", "c"]);
});

it("leaves to the store what is not found within its steps and more agents have than it looks at", () => {
  const index = indexOf(1_000_000, undefined, { maxSteps: 5, maxAgents: 10 });
  for (let i = 0; i < 30; i++) {
    const keys = i === 0 ? ["tx", "rare"] : i % 2 === 0 ? ["tx"] : ["tx", "odd"];
    index.put({ id: `a${10 + i}`, active: true, keys, capabilities: [{ id: "n", category: "k" }] });
  }
  expect(index.findCapabilities({ keys: ["tx", "odd"] }, NOWHERE, 10)).toBeUndefined();
  expect(index.findCapabilities({ keys: ["tx", "odd"] }, NOWHERE, 1)).toEqual([{ id: "n", agentId: "a11" }]);
  expect(index.findCapabilities({ keys: ["tx", "rare"] }, NOWHERE, 10)).toEqual([
    { id: "n", agentId: "a10" },
  ]);
});

it("finds the same when it was loaded at once, in whatever order", () => {
  fc.assert(
    fc.property(fc.uniqueArray(agent, { selector: ({ id }) => id }), query, (agents, asked) => {
      fc.pre(asked.keys.length > 0 || asked.category !== undefined || asked.id !== undefined);
      const index = indexOf(1_000_000);
      index.beginLoading();
      for (const each of agents) index.put(each);
      index.endLoading();
      expect(index.findCapabilities(asked, NOWHERE, 100)).toEqual(lookUp(agents, asked));
    }),
  );
});

it("gives itself up when it would hold more than it may, and says so once", () => {
  let full = 0;
  const index = indexOf(2_100, () => {
    full += 1;
  });
  index.put({ id: "a", active: true, keys: ["tx", "ty"], capabilities: [] });
  expect(index.findAgents(["tx", "ty"], "", 10)).toEqual(["a"]);
  index.put({ id: "b", active: true, keys: ["tx"], capabilities: [] });
  expect(full).toBe(0);
  index.put({ id: "c", active: true, keys: ["tx"], capabilities: [] });
  index.put({ id: "d", active: true, keys: ["tx"], capabilities: [] });
  expect(index.findAgents(["tx", "ty"], "", 10)).toBeUndefined();
  expect(full).toBe(1);
});
