import { ManualClock } from "@depute/core";
import { createLogger } from "@depute/service";
import { openStore, type Store } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { A2aPeer } from "../peers/a2a-peer.ts";
import type { Peer } from "../peers/peer.ts";
import { PeerFault, refusalOf, UNREACHABLE } from "../rules/refusal.ts";
import { PUSH_MIGRATIONS } from "../store/migrations.ts";
import { dueCancels, insertRemote, oweCancel, putPeerState } from "../store/remote-rows.ts";
import { Cancellations } from "./cancellations.ts";

let store: Store;
let clock: ManualClock;
let cancelledIds: string[];
let answer: () => void;
let cancellations: Cancellations;

beforeEach(async () => {
  store = await openStore({ memory: true, migrations: PUSH_MIGRATIONS, onError: () => {} });
  clock = new ManualClock();
  cancelledIds = [];
  answer = () => {};
  const a2aPeerAt = async ({ url }: { url: string }) =>
    ({
      async cancel(taskId: string) {
        cancelledIds.push(`${url} ${taskId}`);
        answer();
      },
      close() {},
    }) as unknown as A2aPeer;
  const peerAt = async (address: string) =>
    ({
      async cancel({ taskId, reason }: { taskId: string; reason?: string }) {
        cancelledIds.push(`${address} ${taskId} ${reason}`);
        answer();
      },
      close() {},
    }) as unknown as Peer;
  const log = createLogger({ level: "silent", name: "test" });
  cancellations = new Cancellations({ store, peerAt, a2aPeerAt, clock, timers: clock, log });
});
afterEach(async () => {
  await cancellations.close();
  await store.close();
});

async function owe(taskId: string, endpoint = "http://a", peerState = "") {
  await store.write(async (tx) => {
    const remote = { remoteId: `r-${taskId}`, taskId, endpoint, terms: "{}", lastEventId: "" };
    await insertRemote(tx, remote);
    await putPeerState(tx, remote.remoteId, peerState);
    await oweCancel(tx, taskId, "enough", clock.now());
  });
}

const dueList = () => store.read((tx) => dueCancels(tx, Number.MAX_SAFE_INTEGER, 100));
const settled = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test("an endpoint receives a cancellation once, with the reason", async () => {
  await owe("t1");
  cancellations.wake();
  await settled();
  expect([cancelledIds, await dueList()]).toEqual([["http://a r-t1 enough"], []]);
});

test("many cancellations are sent in batches, one after the other", async () => {
  for (let number = 0; number < 40; number++) await owe(`t${number}`);
  cancellations.wake();
  await settled();
  expect([cancelledIds.length, await dueList()]).toEqual([40, []]);
});

test("a cancellation to an unavailable endpoint is retried with growing waits, and finally abandoned", async () => {
  answer = () => {
    throw new PeerFault(UNREACHABLE, "away");
  };
  await owe("t1");
  cancellations.wake();
  await settled();
  expect(cancelledIds).toHaveLength(1);
  clock.advance(999);
  await settled();
  expect(cancelledIds).toHaveLength(1);
  for (let tries = 2; tries <= 24; tries++) {
    clock.advance(600_000);
    await settled();
    expect(cancelledIds).toHaveLength(tries);
  }
  expect(await dueList()).toEqual([]);
});

test.each([-32009, -32010, -32601])(
  "an endpoint that answers %i gets no further cancellation",
  async (code) => {
    answer = () => {
      throw new PeerFault(refusalOf(code), "no", { code });
    };
    await owe("t1");
    cancellations.wake();
    await settled();
    expect([cancelledIds.length, await dueList()]).toEqual([1, []]);
  },
);

const A2A_ADDRESS = 'a2a:{"binding":"JSONRPC","url":"http://b","tenant":"","streaming":true}';

test.each([
  [
    "a task at an A2A agent is cancelled by the agent's id",
    '{"taskId":"x","contextId":"","answers":0}',
    ["http://b x"],
  ],
  ["a message that an A2A agent never answered has no task to cancel", "", []],
])("%s", async (_, state, expected) => {
  await owe("t1", A2A_ADDRESS, state);
  cancellations.wake();
  await settled();
  expect([cancelledIds, await dueList()]).toEqual([expected, []]);
});
