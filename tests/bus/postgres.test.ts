import { randomUUID } from "node:crypto";
import { ALL_KEYS, type Bus, type OnError } from "@depute/bus";
import { busSuite, PostgresBus, subscribeAndProbe } from "@depute/bus/testing";
import { CuttingProxy, freeSchema, postgresForTests } from "@depute/store/testing";
import { Client } from "pg";
import { afterAll, afterEach, describe, expect, onTestFinished, test, vi } from "vitest";

const WAIT = { interval: 5, timeout: 10_000 };

const postgres = await postgresForTests();
afterAll(() => postgres?.stop());

describe.skipIf(postgres === undefined)("over Postgres", () => {
  const url = postgres?.url ?? "";
  // A channel's name has at most 63 characters, and the suite's topics have 41.
  const namespace = freeSchema().slice(0, 20);
  busSuite(
    (onError) => ({
      local: new PostgresBus({ url, namespace, onError }),
      remote: new PostgresBus({ url, namespace, onError }),
    }),
    { longestKey: 7_000 },
  );

  const opened: Bus[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus.close()));
  });

  const open = (address = url, space = namespace) => {
    const onError = vi.fn<OnError>();
    const onDrop = vi.fn<(count: number) => void>();
    const bus = new PostgresBus({ url: address, namespace: space, onError, onDrop });
    opened.push(bus);
    return { bus, onError, onDrop, topic: `test-${randomUUID().slice(0, 13)}` };
  };

  test("a stock client receives the keys on the topic's channel, and wakes listeners", async () => {
    const { bus, topic } = open();
    const received = await subscribeAndProbe(bus, bus, topic);
    const stock = new Client(url);
    await stock.connect();
    onTestFinished(() => stock.end());
    const payloads: unknown[] = [];
    stock.on("notification", ({ payload }) => payloads.push(payload));
    await stock.query(`LISTEN "${namespace}:${topic}"`);
    bus.publish(topic, "one");
    bus.publish(topic, "an ünïque key");
    await vi.waitFor(() => expect(payloads.join()).toContain('"one","an ünïque key"]'), WAIT);
    await stock.query("SELECT pg_notify($1, $2)", [`${namespace}:${topic}`, '["elsewhere"]']);
    await vi.waitFor(() => expect(received.keys).toEqual(["one", "an ünïque key", "elsewhere"]), WAIT);
  });

  test("platforms in other namespaces receive nothing", async () => {
    const { bus, topic } = open();
    const other = open(url, freeSchema().slice(0, 20)).bus;
    const received = await subscribeAndProbe(other, other, topic);
    await subscribeAndProbe(bus, bus, topic);
    bus.publish(topic, "theirs");
    other.publish(topic, "own");
    await vi.waitFor(() => expect(received.keys).toEqual(["own"]), WAIT);
  });

  test("keys beyond one payload arrive in several; a key beyond any payload wakes all keys", async () => {
    const sender = open().bus;
    const { bus, topic } = open();
    const all: string[] = [];
    await subscribeAndProbe(sender, bus, topic);
    bus.subscribe(topic, (key) => all.push(key));
    const keys = Array.from({ length: 1_000 }, (_, n) => `key ${n} ${"x".repeat(40)}`);
    for (const key of keys) sender.publish(topic, key);
    await vi.waitFor(() => expect(keys.filter((key) => !all.includes(key))).toEqual([]), WAIT);
    sender.publish(topic, "y".repeat(8_000));
    await vi.waitFor(() => expect(all).toContain(ALL_KEYS), WAIT);
  });

  test("a lost connection is reported once; then waiting keys are sent, and listeners get ALL_KEYS", async () => {
    const address = new URL(url);
    const host = address.searchParams.get("host") ?? address.hostname;
    const proxy = await CuttingProxy.start(
      host.startsWith("/")
        ? { path: `${host}/.s.PGSQL.${address.port || "5432"}` }
        : { host, port: Number(address.port || "5432") },
    );
    try {
      const through = open(
        `postgres://${address.username || "depute"}@127.0.0.1:${proxy.port}${address.pathname}`,
      );
      const { bus, topic, onError } = through;
      const other = open().bus;
      const theirs = await subscribeAndProbe(bus, other, topic);
      const own: string[] = [];
      bus.subscribe(topic, (key) => own.push(key));
      proxy.cut("reset");
      await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(1), WAIT);
      bus.publish(topic, "waits");
      await vi.waitFor(() => expect(own).toEqual(["waits"]), WAIT);
      expect(theirs.keys).toEqual([]);
      proxy.restore();
      await vi.waitFor(() => expect(theirs.keys).toEqual(["waits"]), WAIT);
      await vi.waitFor(() => expect(own).toContain(ALL_KEYS), WAIT);
      expect(onError).toHaveBeenCalledTimes(1);
    } finally {
      await proxy.stop();
    }
  });

  test("a bus without a database closes, and counts the wake-ups that it drops", async () => {
    const { bus, onDrop, topic } = open("postgres://depute@127.0.0.1:1/none");
    bus.publish(topic, "a");
    bus.publish(topic, "b");
    await bus.close();
    expect(onDrop).toHaveBeenCalledWith(2);
  });
});
