import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import type { Peer } from "../peers/peer.ts";
import { Kept, MAX_KEPT, type OpenStream } from "./kept.ts";

function stream(): OpenStream & { closed: () => boolean } {
  let closed = false;
  const peer = { close: () => (closed = true) } as unknown as Peer;
  const events = { next: async () => ({ done: true, value: undefined }) } as never;
  const stop = new AbortController();
  return { events, peer, stop, closed: () => closed && stop.signal.aborted };
}

test("a stream is kept until it is taken, dropped or expired", () => {
  const clock = new ManualClock();
  const keptStreams = new Kept(clock);
  const [taken, dropped, old, replaced, latest] = [stream(), stream(), stream(), stream(), stream()];
  keptStreams.keep("taken", taken);
  keptStreams.keep("dropped", dropped);
  keptStreams.keep("replaced", replaced);
  keptStreams.keep("replaced", latest);
  expect(keptStreams.take("taken")).toMatchObject({ stop: taken.stop });
  expect(keptStreams.take("taken")).toBeUndefined();
  keptStreams.drop("dropped");
  keptStreams.drop("unknown");
  keptStreams.keep("old", old);
  expect([taken, dropped, replaced, latest, old].map(({ closed }) => closed())).toEqual([
    ...[false, true, true],
    ...[false, false],
  ]);
  clock.advance(3_600_000);
  expect([old.closed(), latest.closed(), taken.closed()]).toEqual([true, true, false]);
});

test("the newest streams are kept up to the maximum, and none after the close", () => {
  const keptStreams = new Kept(new ManualClock());
  const streams = Array.from({ length: MAX_KEPT + 2 }, stream);
  for (const [number, each] of streams.entries()) keptStreams.keep(`t${number}`, each);
  expect(streams.filter(({ closed }) => closed())).toEqual(streams.slice(0, 2));
  keptStreams.close();
  expect(streams.every(({ closed }) => closed())).toBe(true);
});
