import type { Store } from "@depute/store";
import { expect, it } from "vitest";
import { BlockNotes } from "./block-notes.ts";
import { openMemory } from "./testing/parts.ts";

const [A, B] = ["A".repeat(43), `${"A".repeat(42)}E`];

it("the store is asked for blocks that have something noted, and for no others; also after a restart", async () => {
  const memory = await openMemory();
  let reads = 0;
  const store: Store = {
    read: (fn) => {
      reads++;
      return memory.read(fn);
    },
    write: (fn) => memory.write(fn),
    close: () => memory.close(),
  };
  const notes = new BlockNotes(store);
  await notes.start();
  expect(await notes.read([A, B])).toBeUndefined();
  expect(reads).toBe(1);
  const binding = { audiences: [], tenants: ["acme"] };
  await store.write((tx) => notes.bind(tx, B, binding));
  // Given once: what was there stays.
  await store.write((tx) => notes.bind(tx, B, { audiences: [], tenants: ["other"] }));
  await store.write((tx) => notes.bind(tx, A, { audiences: [], tenants: [] }));
  expect(await notes.read([A])).toBeUndefined();
  expect(await notes.read([A, B])).toEqual({ counted: [0, 0], bindings: [binding] });
  const again = new BlockNotes(store);
  await again.start();
  expect(await again.read([A, B])).toEqual({ counted: [0, 0], bindings: [binding] });
  expect(reads).toBe(4);
});
