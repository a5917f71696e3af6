import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type Clock, systemClock } from "@depute/core";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openStore } from "../open.ts";
import { freeSchema, ownPostgresForTests } from "../testing/postgres-server.ts";

const postgres = await ownPostgresForTests();
afterAll(() => postgres?.stop());

describe.skipIf(postgres === undefined)("a database that opens connections late", () => {
  const closes: (() => void)[] = [];
  afterEach(() => {
    for (const close of closes.splice(0)) close();
  });

  /** Starts a proxy in front of the database. The proxy never answers the first `silent` connections. */
  async function lateServer(silent: number): Promise<{ url: string; attempts: () => number }> {
    const sockets: Socket[] = [];
    let attempts = 0;
    const server = createServer((inside) => {
      sockets.push(inside);
      inside.on("error", () => {});
      if (attempts++ < silent) return;
      const outside = connect(postgres?.path ?? "");
      sockets.push(outside);
      outside.on("error", () => inside.destroy());
      inside.pipe(outside).pipe(inside);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    closes.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    const { port } = server.address() as { port: number };
    return { url: `postgres://depute@127.0.0.1:${port}/postgres`, attempts: () => attempts };
  }

  const open = (url: string, errors: string[], clock: Clock = systemClock) =>
    openStore({
      ...{ postgres: url, schema: freeSchema(), migrations: [], clock },
      onError: (_, message) => errors.push(message),
    });

  test("is tried again, so that a busy host does not end the start", async () => {
    const errors: string[] = [];
    const store = await open((await lateServer(2)).url, errors);
    await store.close();
    expect(errors).toEqual(Array(2).fill("the database did not open a connection in time; trying again"));
  });

  test("ends the start after a while", async () => {
    const server = await lateServer(Number.POSITIVE_INFINITY);
    let passedMs = 0;
    const clock: Clock = { now: () => systemClock.now(), monotonic: () => passedMs };
    const opening = open(server.url, [], clock);
    opening.catch(() => {});
    await expect.poll(server.attempts, { timeout: 10_000 }).toBe(2);
    passedMs = 15_000;
    await expect(opening).rejects.toThrow("the database does not answer");
    expect(server.attempts()).toBe(2);
  });
});
