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

const indexOf = (maxBytes: number, onFull = () => {}) => new AgentIndex({ maxBytes, onFull });

/** What a look at every agent finds. */
function lookUp(agents: Iterable<IndexedAgent>, { keys, category, id }: IndexQuery): CapabilityPlace[] {
  const found = [...agents]
    .filter((each) => each.active && keys.every((key) => each.keys.includes(key)))
    .flatMap((each) => each.capabilities.map((own) => ({ ...own, agentId: each.id })))
    .filter((own) => (category ?? own.category) === own.category && (id ?? own.id) === own.id)
    .map(({ id: name, agentId }) => ({ id: name, agentId }));
  return found.sort((a, b) => compareText(a.id, b.id) || compareText(a.agentId, b.agentId));
}

it("finds what a look at every agent finds, page by page, whatever was put before", () => {
  fc.assert(
    fc.property(
      fc.array(agent, { maxLength: 12 }),
      query,
      fc.integer({ min: 1, max: 4 }),
      (puts, asked, size) => {
        fc.pre(asked.keys.length > 0 || asked.category !== undefined || asked.id !== undefined);
        const [index, agents] = [indexOf(1_000_000), new Map<string, IndexedAgent>()];
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
});

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

it("leaves to the store what more agents have than it looks at", () => {
  const index = indexOf(10_000_000);
  for (let i = 0; i < 20_001; i++) {
    const keys = i === 0 ? ["tx", "rare"] : ["tx"];
    index.put({ id: `a${i}`, active: true, keys, capabilities: [{ id: "n", category: "k" }] });
  }
  expect(index.findCapabilities({ keys: ["tx"], category: "k" }, NOWHERE, 10)).toBeUndefined();
  expect(index.findCapabilities({ keys: ["tx", "rare"] }, NOWHERE, 10)).toEqual([{ id: "n", agentId: "a0" }]);
});

it("gives itself up when it would hold more than it may, and says so once", () => {
  let full = 0;
  const index = indexOf(1_100, () => {
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
