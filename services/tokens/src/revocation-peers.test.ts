import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import { createRevocation, type RevocationEntry } from "@depute/dct";
import { FOUND } from "@depute/store";
import { describe, expect, it } from "vitest";
import type { Fetch } from "./outbound.ts";
import { RevocationPeers } from "./revocation-peers.ts";
import { alice, engine, otherRoot } from "./testing/holders.ts";
import { createReplica, openBus, openMemory, rootToken, silent } from "./testing/parts.ts";

const PEER = "https://peer.example/delegateos";
const SOURCE = "https://source.example/delegateos/revocations";
const POLL_MS = 60_000;

/** Starts a platform. Its calls to other platforms go to the function `answer`. */
async function start(
  answer: (address: string, body: string | undefined) => Response | Error,
  more: object = {},
) {
  const clock = new ManualClock();
  const store = await openMemory();
  const bus = openBus();
  const replica = createReplica({ store, bus, clock });
  await replica.reader.look();
  const peerCalls: { address: string; body: string | undefined; redirect: string | undefined }[] = [];
  const fetch = (async (address: string, init: RequestInit) => {
    const body = init.body as string | undefined;
    peerCalls.push({ address, body, redirect: init.redirect });
    const answered = answer(address, body);
    if (answered instanceof Error) throw answered;
    return answered;
  }) as unknown as Fetch;
  const open = () =>
    new RevocationPeers({
      ...{ engine, store, bus, timers: clock, log: silent, revocations: replica.revocations, fetch },
      ...{ peers: [], sources: [], pollMs: POLL_MS, ...more },
      work: { lease: () => undefined },
    });
  const peers = open();
  const log = async () =>
    (await store.read((tx) => tx.all(FOUND, "SELECT revocation_id FROM revocations"))).length;
  return { ...replica, clock, store, peers, open, asked: peerCalls, log };
}

type Parts = Awaited<ReturnType<typeof start>>;

async function settle(until: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if (await until()) return;
    await setImmediate();
  }
  throw new Error("it does not come");
}

/** Mints a token of `otherRoot` and revokes it, as a caller would. */
async function revokeOne({ clock, chains, revocations }: Parts): Promise<RevocationEntry> {
  clock.advance(1);
  const chain = await chains.proven(rootToken(clock));
  if (!chain.ok) throw new Error(chain.denial.type);
  const id = chain.blocks[0]?.revocationId ?? "";
  const entry = createRevocation(engine, id, "block", otherRoot, clock.now());
  await revocations.record(entry, "", chain.blocks);
  return entry;
}

const peerReports = ({ asked }: Parts) =>
  asked.map(({ body }) => JSON.parse(body ?? "{}").params?.revocation.revocationId);

describe("a peer", () => {
  it("receives every entry once, in order, also after a restart", async () => {
    const parts = await start(() => new Response(null, { status: 204 }), { peers: [PEER] });
    const first = await revokeOne(parts);
    parts.peers.start();
    await settle(() => parts.asked.length === 1);
    const second = await revokeOne(parts);
    await settle(() => parts.asked.length === 2);
    await parts.peers.close();
    const third = await revokeOne(parts);
    const again = parts.open();
    again.start();
    await settle(() => parts.asked.length === 3);
    await again.close();
    expect(peerReports(parts)).toEqual([first, second, third].map(({ revocationId }) => revocationId));
    expect(parts.asked[0]).toMatchObject({ address: PEER, redirect: "error" });
  });

  it("is retried with growing waits while unavailable, and misses nothing (R4)", async () => {
    let isAway = true;
    const parts = await start(() => (isAway ? new Error("no route") : new Response(null, { status: 200 })), {
      peers: [PEER],
    });
    const { revocationId } = await revokeOne(parts);
    parts.peers.start();
    for (const ms of [1000, 2000, 4000]) {
      const before = parts.asked.length;
      await settle(() => parts.clock.pending > 0);
      parts.clock.advance(ms - 1);
      expect(parts.asked.length).toBe(Math.max(1, before));
      parts.clock.advance(1);
      await settle(() => parts.asked.length > Math.max(1, before));
    }
    isAway = false;
    const before = parts.asked.length;
    await settle(() => parts.clock.pending > 0);
    parts.clock.advance(10 * 60_000);
    await settle(() => parts.asked.length === before + 1);
    expect(new Set(peerReports(parts))).toEqual(new Set([revocationId]));
    await parts.peers.close();
  });

  it("does not block other entries by refusing one", async () => {
    let calls = 0;
    const parts = await start(() => new Response("{}", { status: calls++ === 0 ? 422 : 200 }), {
      peers: [PEER],
    });
    await revokeOne(parts);
    const { revocationId } = await revokeOne(parts);
    parts.peers.start();
    await settle(() => parts.asked.length === 2);
    await parts.peers.close();
    expect(peerReports(parts)[1]).toBe(revocationId);
  });
});

describe("a source", () => {
  const listOf = (entries: readonly RevocationEntry[]) => (address: string) => {
    const since = Number(new URL(address).searchParams.get("since"));
    const page = entries.slice(since, since + 2);
    return Response.json({ entries: page, nextSequence: since + page.length });
  };
  const foreign = (n: number) =>
    createRevocation(engine, `${"A".repeat(41)}${"ABCDEFGHIJ"[n]}A`, "block", alice, 0);

  it("is read in pages from the last cursor, and its entries wait for a chain", async () => {
    const entries = [0, 1, 2, 3, 4].map(foreign);
    const parts = await start((address) => listOf(entries)(address), { sources: [SOURCE] });
    parts.peers.start();
    await settle(() => parts.clock.pending > 0);
    expect(parts.asked.map(({ address }) => new URL(address).search)).toEqual([
      "?since=0",
      "?since=2",
      "?since=4",
      "?since=5",
    ]);
    for (const { revocationId, revokedBy } of entries) {
      expect(parts.state.isPending(revocationId, [revokedBy])).toBe(true);
    }
    // The log has none of the entries, because no chain proves that their revokers are rightful.
    expect(await parts.log()).toBe(0);
    entries.push(foreign(5));
    parts.clock.advance(POLL_MS);
    await settle(() => parts.state.isPending(foreign(5).revocationId, [foreign(5).revokedBy]));
    expect(parts.asked.at(4)?.address).toBe(`${SOURCE}?since=5`);
    await parts.peers.close();
  });

  it("continues after an entry whose revoker is not proven rightful, which waits (R1)", async () => {
    const parts = await start((address) => listOf(entries)(address), { sources: [SOURCE] });
    const entries: RevocationEntry[] = [];
    const revocation = await revokeOne(parts);
    // The service cannot log the first entry of the list: the block is not recorded, so nothing proves that the revoker
    // is rightful. The poll must still take the next entry.
    entries.push({ ...createRevocation(engine, revocation.revocationId, "chain", alice, 0) }, foreign(1));
    parts.peers.start();
    await settle(() => parts.state.isPending(foreign(1).revocationId, [foreign(1).revokedBy]));
    expect(await parts.log()).toBe(1);
    await parts.peers.close();
  });

  it.each([
    ["that is unavailable", () => new Error("no route")],
    ["that answers with an error", () => new Response("[]", { status: 500 })],
    ["that answers without a list", () => Response.json({ revoked: [] })],
    ["that answers with too many bytes", () => new Response("x".repeat(4 * 1024 * 1024 + 1))],
  ])("%s is read again at the next poll", async (_, answer) => {
    const parts = await start(answer, { sources: [SOURCE] });
    parts.peers.start();
    await settle(() => parts.clock.pending > 0);
    expect(parts.asked).toHaveLength(1);
    parts.clock.advance(POLL_MS);
    await settle(() => parts.asked.length === 2);
    await parts.peers.close();
  });

  it("is read up to a bounded number of pages a poll", async () => {
    const parts = await start(
      (address) =>
        Response.json({ entries: [], nextSequence: Number(new URL(address).searchParams.get("since")) + 1 }),
      { sources: [SOURCE] },
    );
    parts.peers.start();
    await settle(() => parts.clock.pending > 0);
    expect(parts.asked).toHaveLength(100);
    await parts.peers.close();
  });
});
