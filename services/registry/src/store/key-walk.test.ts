import { create } from "@bufbuild/protobuf";
import { AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { openStore, ReadCache, type Store } from "@depute/store";
import { freeSchema } from "@depute/store/testing";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createStoredAgent, type StoredAgent } from "../rules/agent.ts";
import { putRecord } from "./agents.ts";
import { BEGINNING, indexCapabilities, replaceCapabilities } from "./capabilities.ts";
import { findPlaces, type KeyQuery, type Place, type SearchBounds } from "./key-walk.ts";
import { migrations } from "./migrations.ts";

/** Names whose order by UTF-16 units differs from their order by code points. Both databases order by code points. */
const NAMES = ["a", "b", "\uffee", "\u{1f600}"];
const TAGS = ["x", "y", "z"];
const capability = fc.record({ id: fc.constantFrom(...NAMES), category: fc.constantFrom("k", "l") });
const agent = fc.record({
  tags: fc.subarray(TAGS),
  later: fc.subarray(TAGS),
  capabilities: fc.uniqueArray(capability, { selector: ({ id }) => id }),
});
const query = fc.record({
  resource: fc.constantFrom("agents" as const, "capabilities" as const),
  keys: fc.subarray(["tx", "ty", "tz", "ck"], { minLength: 1 }),
  id: fc.option(fc.constantFrom(...NAMES), { nil: undefined }),
});
const bounds: fc.Arbitrary<SearchBounds> = fc.record({
  walk: fc.integer({ min: 1, max: 4 }),
  maxWalks: fc.integer({ min: 1, max: 2 }),
  maxMatches: fc.integer({ min: 0, max: 4 }),
});

let store: Store;
beforeAll(async () => {
  store = await open();
});
afterAll(() => store.close());

type World = { tags: string[]; later: string[]; capabilities: { id: string; category: string }[] }[];

it("every search equals a full scan, page by page, in the order of code points", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(agent, { maxLength: NAMES.length }),
      fc.array(fc.tuple(query, bounds, fc.integer({ min: 1, max: 3 })), { minLength: 5, maxLength: 5 }),
      async (world, searches) => {
        await fill(world);
        for (const [query, limits, size] of searches) {
          expect(await search(query, limits, size)).toEqual(scanAll(world, query));
        }
      },
    ),
    { numRuns: 30 },
  );
});

function open(): Promise<Store> {
  const settings = {
    migrations,
    onError: (error: unknown) => {
      throw error;
    },
  };
  const postgres = process.env.DEPUTE_POSTGRES_URL;
  return openStore(
    postgres === undefined ? { memory: true, ...settings } : { postgres, schema: freeSchema(), ...settings },
  );
}

/** Registers each agent with its first tags and capabilities, and then again with its later tags. */
async function fill(world: World): Promise<void> {
  const memory = { recent: new ReadCache<StoredAgent>(10) };
  await store.write(async (tx) => {
    for (const [i, id] of NAMES.entries()) {
      const { tags, later, capabilities } = world[i] ?? { tags: [], later: [], capabilities: [] };
      const before = createStoredAgent(create(AgentSchema, { id, tags }), undefined, 1);
      await putRecord(tx, memory, before);
      const published = capabilities.map(({ id: name, category }) => {
        return {
          message: create(CapabilityFullSchema, { id: name }),
          category,
          digest: "d",
          input: {},
          output: {},
          examples: [],
        };
      });
      await replaceCapabilities(
        tx,
        id,
        published,
        tags.map((tag) => `t${tag}`),
      );
      await putRecord(tx, memory, { ...before, record: create(AgentSchema, { id, tags: later }) });
      await indexCapabilities(
        tx,
        id,
        later.map((tag) => `t${tag}`),
      );
    }
  });
}

async function search(query: KeyQuery, limits: SearchBounds, size: number): Promise<Place[]> {
  const foundPlaces: Place[] = [];
  let after: Place | undefined = query.id === undefined ? BEGINNING : { id: query.id, agentId: "" };
  while (after !== undefined) {
    const from: Place = after;
    const { places, stoppedAt } = await store.read((tx) => findPlaces(tx, query, from, size, limits));
    foundPlaces.push(...places);
    after = stoppedAt ?? (places.length < size ? undefined : places.at(-1));
  }
  return foundPlaces.map(({ id, agentId }) => ({ id, agentId }));
}

function scanAll(world: World, { resource, keys, id }: KeyQuery): Place[] {
  const agents = world.map((each, i) => ({ ...each, agentId: NAMES[i] ?? "" }));
  const has = (ownKeys: readonly string[]) => keys.every((key) => ownKeys.includes(key));
  const keysOf = (tags: readonly string[]) => tags.map((tag) => `t${tag}`);
  if (resource === "agents") {
    const foundAgents = agents.filter(({ later }) => has(keysOf(later)));
    return foundAgents.map(({ agentId }) => ({ id: "", agentId }));
  }
  // NAMES is already in the order of code points, and the result must have this order.
  return NAMES.filter((name) => id === undefined || name === id).flatMap((name) =>
    agents.flatMap(({ agentId, later, capabilities }) => {
      const ownCapability = capabilities.find((each) => each.id === name);
      const isFound = ownCapability !== undefined && has([...keysOf(later), `c${ownCapability.category}`]);
      return isFound ? [{ id: name, agentId }] : [];
    }),
  );
}
