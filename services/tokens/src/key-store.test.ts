import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import { SealedSecrets } from "@depute/service";
import { expect, it } from "vitest";
import { KeyStore } from "./key-store.ts";
import { listKeys } from "./store/kept-keys.ts";
import { engine } from "./testing/holders.ts";
import { createReplica, openBus, openMemory, silent } from "./testing/parts.ts";

const HOUR_MS = 3_600_000;

it("a key beyond its age is replaced automatically, a younger one is not", async () => {
  const clock = new ManualClock();
  const store = await openMemory();
  const { audit } = createReplica({ store, bus: openBus(), clock });
  const secrets = new SealedSecrets(new Uint8Array(32).fill(1));
  const keys = new KeyStore({
    ...{ engine, store, clock, timers: clock, log: silent, audit, secrets, maxAgeMs: HOUR_MS },
  });
  await keys.start();
  const keyDetails = (requestId: string) => ({ requestId, digest: "", agentId: "", organization: "acme" });
  const old = await keys.create("o", keyDetails("1"));
  clock.advance(HOUR_MS - 60_000);
  await setImmediate();
  const young = await keys.create("o", keyDetails("2"));
  const states = async () => {
    const all = await store.read((tx) => listKeys(tx, "o", 0, 10));
    return all.map(({ id, state }) => [id, state]);
  };
  for (let minute = 0; minute < 3; minute++) {
    clock.advance(60_001);
    for (let turn = 0; turn < 20; turn++) await setImmediate();
  }
  const [first, second, successor, ...none] = await states();
  expect([first, second]).toEqual([
    [old.id, "replaced"],
    [young.id, "active"],
  ]);
  expect(successor?.[1]).toBe("active");
  expect(none).toEqual([]);
  await keys.close();
});
