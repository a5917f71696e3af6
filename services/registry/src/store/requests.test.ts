import { openStore, type Store } from "@depute/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { migrations } from "./migrations.ts";
import { REQUEST_RETENTION_MS, recall, remember } from "./requests.ts";

let store: Store;
beforeEach(async () => {
  store = await openStore({
    memory: true,
    migrations,
    onError: (error) => {
      throw error;
    },
  });
});
afterEach(() => store.close());

const key = (requestId: string) => ({ caller: "c", requestId, digest: "d" });
const keep = (id: string, now: number) => store.write((tx) => remember(tx, key(id), Uint8Array.of(1), now));
const isKept = async (id: string) => (await store.read((tx) => recall(tx, key(id)))) !== undefined;

describe("answers", () => {
  it("are kept for as long as they are promised, and then forgotten", async () => {
    await keep("old", 1_000);
    await keep("young", 1_000 + REQUEST_RETENTION_MS);
    expect(await isKept("old")).toBe(true);
    await keep("younger", 1_001 + REQUEST_RETENTION_MS);
    expect(await isKept("old")).toBe(false);
    expect(await isKept("young")).toBe(true);
  });

  it("do not pile up after a quiet time", async () => {
    for (let i = 0; i < 30; i++) await keep(`old-${i}`, 0);
    for (let i = 0; i < 3; i++) await keep(`new-${i}`, 2 * REQUEST_RETENTION_MS);
    const rows = await store.read((tx) => tx.all<{ request_id: string }>("SELECT request_id FROM requests"));
    expect(rows.map((row) => row.request_id).sort()).toEqual(["new-0", "new-1", "new-2"]);
  });
});
