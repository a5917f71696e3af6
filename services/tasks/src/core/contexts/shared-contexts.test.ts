import { randomBytes, randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { SharedMemory } from "@depute/bus";
import { RedisMemory, redisForTests } from "@depute/bus/testing";
import { ShareContextRequestSchema } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { systemClock, systemTimers } from "@depute/core";
import { SealedSecrets } from "@depute/service";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { refusal } from "../../testing/platform.ts";
import type { ContextRecord } from "../rules/context.ts";
import { contextRoom } from "../rules/context-room.ts";
import { newContext } from "./contexts.ts";
import { SharedContexts } from "./shared-contexts.ts";

/** The memory of two replicas on a real Redis. tests/tasks/contexts.test.ts runs the processes. */

const redis = await redisForTests();
afterAll(() => redis?.stop());

const SECRET = new TextEncoder().encode('{"note":"between us"}');

describe.skipIf(redis === undefined)("contexts in Redis", () => {
  const opened: SharedMemory[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });
  const replicas = (room = contextRoom(10_000, false)) => {
    const [key, namespace] = [randomBytes(32), randomUUID()];
    const openMemory = () => {
      const options = { url: redis?.url ?? "", namespace, onError: () => {} };
      const memory = new RedisMemory({ ...options, clock: systemClock, timers: systemTimers });
      opened.push(memory);
      return memory;
    };
    const open = (seed = key) => {
      const seal = new SealedSecrets(new Uint8Array(seed));
      return new SharedContexts({ memory: openMemory(), seal, roomFor: () => room, onError: () => {} });
    };
    return { a: open(), b: open(), stranger: open(randomBytes(32)), raw: openMemory() };
  };
  const record = (owner = "alice"): ContextRecord => {
    const envelope = { data: SECRET, ttlS: 60, permissions: { persist: false } };
    const request = create(ShareContextRequestSchema, { requestId: randomUUID(), envelope });
    return newContext(request, { owner, organization: "" }, [], Date.now());
  };
  const add = (contexts: SharedContexts, ...records: ContextRecord[]) =>
    contexts.using(async () => contexts.add(records));
  const find = (contexts: SharedContexts, { id }: ContextRecord) =>
    contexts.using(async () => contexts.find(id));

  test("another replica reads an added context, with its digest", async () => {
    const { a, b } = replicas();
    const one = record();
    await add(a, one);
    const held = await find(b, one);
    expect(Buffer.from(held?.data ?? "")).toEqual(Buffer.from(SECRET));
    expect(held?.digest).toBe(one.digest);
    expect(await b.lostOf([one.id, "none"])).toEqual(["none"]);
  });

  test("Redis never has the data or its digest in clear text, and another key or id does not open it", async () => {
    const { a, stranger, raw } = replicas();
    const one = record();
    await add(a, one);
    const [value = ""] = await raw.get([one.id]);
    const bytes = String(Buffer.from(value, "base64url"));
    expect(bytes.length).toBeGreaterThan(SECRET.length);
    for (const clear of ["between us", one.digest]) expect(value + bytes).not.toContain(clear);
    expect(await find(stranger, one)).toBeUndefined();
    const other = record();
    const moved = { id: other.id, value, bytes: 1, expireMs: other.expireMs };
    await raw.add("mallory", [moved], contextRoom(10_000, false));
    expect(await find(a, other)).toBeUndefined();
  });

  test("no context is available outside `using`, and the process keeps data only during a call", async () => {
    const { a } = replicas();
    const one = record();
    await a.using(async () => {
      a.add([one]);
      expect(a.find(one.id)?.digest).toBe(one.digest);
    });
    expect(() => a.find(one.id)).toThrow("was not fetched");
    expect(() => a.add([record()])).toThrow("was not fetched");
  });

  test("the number of contexts of one owner is bounded over all replicas", async () => {
    const { a, b } = replicas({ bytes: 10_000, number: 10, ofOwner: 2 });
    const [one, two, three] = [record(), record(), record()];
    await add(a, one);
    await add(b, two);
    expect(await refusal(add(a, three))).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "context_memory.of_owner", max: "2" },
    });
    await add(a, record("bob"));
    b.remove(one.id);
    await expect
      .poll(() =>
        add(a, three).then(
          () => "added",
          () => "refused",
        ),
      )
      .toBe("added");
  });

  test("a function that needs several contexts runs again for each missing one", async () => {
    const { a, b } = replicas();
    const records = [record(), record(), record()];
    await add(a, ...records);
    let runs = 0;
    await b.using(async () => {
      runs++;
      return records.map(({ id }) => b.find(id));
    });
    expect(runs).toBe(4);
  });

  test("a sweep removes contexts without a row", async () => {
    const { a, b } = replicas();
    const [kept, orphan] = [record(), record()];
    await add(a, kept, orphan);
    await b.sweep(async (held) => {
      expect(held.map(({ id }) => id).toSorted()).toEqual([kept.id, orphan.id].toSorted());
      return [orphan.id];
    });
    expect(await a.lostOf([kept.id, orphan.id])).toEqual([orphan.id]);
  });
});
