import { ManualClock } from "@depute/core";
import { createLogger } from "@depute/service";
import { openStore, type Store } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Peer } from "../peers/peer.ts";
import { PeerFault, refusalOf, UNREACHABLE } from "../rules/refusal.ts";
import { PUSH_MIGRATIONS } from "../store/migrations.ts";
import { dueCancels, insertRemote, oweCancel } from "../store/remote-rows.ts";
import { Cancellations } from "./cancellations.ts";

let store: Store;
let clock: ManualClock;
let told: string[];
let answer: () => void;
let cancellations: Cancellations;

beforeEach(async () => {
  store = await openStore({ memory: true, migrations: PUSH_MIGRATIONS, onError: () => {} });
  clock = new ManualClock();
  told = [];
  answer = () => {};
  const peerAt = async (address: string) =>
    ({
      async cancel({ taskId, reason }: { taskId: string; reason?: string }) {
        told.push(`${address} ${taskId} ${reason}`);
        answer();
      },
      close() {},
    }) as unknown as Peer;
  const log = createLogger({ level: "silent", name: "test" });
  cancellations = new Cancellations({ store, peerAt, clock, timers: clock, log });
});
afterEach(async () => {
  await cancellations.close();
  await store.close();
});

async function owe(taskId: string) {
  await store.write(async (tx) => {
    const remote = { remoteId: `r-${taskId}`, taskId, endpoint: "http://a", terms: "{}", lastEventId: "" };
    await insertRemote(tx, remote);
    await oweCancel(tx, taskId, "enough", clock.now());
  });
}

const owed = () => store.read((tx) => dueCancels(tx, Number.MAX_SAFE_INTEGER, 100));
const settled = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test("an endpoint is told once, with the reason", async () => {
  await owe("t1");
  cancellations.wake();
  await settled();
  expect([told, await owed()]).toEqual([["http://a r-t1 enough"], []]);
});

test("more than are told at once are told one batch after the other", async () => {
  for (let number = 0; number < 40; number++) await owe(`t${number}`);
  cancellations.wake();
  await settled();
  expect([told.length, await owed()]).toEqual([40, []]);
});

test("one that is away is told again, later each time, and is given up in the end", async () => {
  answer = () => {
    throw new PeerFault(UNREACHABLE, "away");
  };
  await owe("t1");
  cancellations.wake();
  await settled();
  expect(told).toHaveLength(1);
  clock.advance(999);
  await settled();
  expect(told).toHaveLength(1);
  for (let tries = 2; tries <= 24; tries++) {
    clock.advance(600_000);
    await settled();
    expect(told).toHaveLength(tries);
  }
  expect(await owed()).toEqual([]);
});

test.each([-32009, -32010, -32601])("one that answers %i has nothing more to hear", async (code) => {
  answer = () => {
    throw new PeerFault(refusalOf(code), "no", { code });
  };
  await owe("t1");
  cancellations.wake();
  await settled();
  expect([told.length, await owed()]).toEqual([1, []]);
});
