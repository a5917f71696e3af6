import { ErrorReason } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore, row, type Store, text } from "./index.ts";
import { REQUEST_RETENTION_MS, RequestMemory, requestTableSql } from "./requests.ts";

const requests = new RequestMemory("requests");
const migrations = [{ id: 1, name: "requests", sql: requestTableSql("requests") }];

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
const keep = (id: string, now: number) =>
  store.write((tx) => requests.remember(tx, key(id), Uint8Array.of(1), now));
const isKept = async (id: string) => (await store.read((tx) => requests.find(tx, key(id)))) !== undefined;

describe("answers", () => {
  it("are kept for the promised time, and then deleted", async () => {
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
    const rows = await store.read((tx) =>
      tx.all(row({ request_id: text }), "SELECT request_id FROM requests"),
    );
    expect(rows.map((row) => row.request_id).sort()).toEqual(["new-0", "new-1", "new-2"]);
  });

  it("refuse the id of another request, and answer another caller's", async () => {
    await keep("r", 1_000);
    const find = (more: object) => store.read((tx) => requests.find(tx, { ...key("r"), ...more }));
    await expect(find({ digest: "other" })).rejects.toMatchObject({ reason: ErrorReason.REQUEST_ID_REUSED });
    expect(await find({ caller: "another", digest: "other" })).toBeUndefined();
    expect(await find({})).toEqual(Uint8Array.of(1));
  });
});
