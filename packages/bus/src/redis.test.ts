import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import type { Bus, OnError } from "./bus.ts";
import { RedisBus } from "./redis.ts";
import { busSuite, subscribeAndProbe } from "./testing/bus-suite.ts";
import { redisForTests } from "./testing/redis-server.ts";
import { tcpProxy } from "./testing/tcp-proxy.ts";

const WAIT = { interval: 5, timeout: 10_000 };

const redis = await redisForTests();
afterAll(() => redis?.stop());

describe.skipIf(redis === undefined)("over Redis", () => {
  const redisUrl = redis?.url ?? "";
  busSuite((onError) => ({
    local: new RedisBus({ url: redisUrl, onError }),
    remote: new RedisBus({ url: redisUrl, onError }),
  }));

  const opened: Bus[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus.close()));
  });

  const open = (url: string) => {
    const onError = vi.fn<OnError>();
    const onDrop = vi.fn<(count: number) => void>();
    const bus = new RedisBus({ url, onError, onDrop });
    opened.push(bus);
    return { bus, onError, onDrop, topic: `test-${randomUUID()}` };
  };

  const throughProxy = async () => {
    const address = new URL(redisUrl);
    const proxy = await tcpProxy({ host: address.hostname, port: Number(address.port || 6379) });
    address.hostname = "127.0.0.1";
    address.port = String(proxy.port);
    return { proxy, url: address.href };
  };

  test("stock clients receive the key on the topic's channel, and publish to it", async () => {
    const { bus, topic } = open(redisUrl);
    const stock = new Redis(redisUrl);
    try {
      const received = await subscribeAndProbe(bus, bus, topic);
      const messages: string[] = [];
      stock.on("message", (channel, payload) => messages.push(`${channel} ${payload}`));
      await stock.subscribe(`depute:${topic}`);
      bus.publish(topic, "from the bus");
      await vi.waitFor(() => expect(messages).toContain(`depute:${topic} from the bus`), WAIT);
      await stock.publish(`depute:${topic}`, "from elsewhere");
      await vi.waitFor(() => expect(received.keys).toEqual(["from the bus", "from elsewhere"]), WAIT);
    } finally {
      stock.disconnect();
    }
  });

  test("a new subscription receives a wake-up for every key", async () => {
    const { bus, topic } = open(redisUrl);
    const keys: string[] = [];
    bus.subscribe(topic, (key) => keys.push(key));
    await vi.waitFor(() => expect(keys).toEqual([""]), WAIT);
  });

  test("an outage is reported once, delays wake-ups, and ends with a wake-up for every key", async () => {
    const { proxy, url } = await throughProxy();
    const { bus: local, onError, onDrop, topic } = open(url);
    const { bus: remote } = open(redisUrl);
    const direct = await subscribeAndProbe(local, remote, topic);
    const all: string[] = [];
    local.subscribe(topic, (key) => all.push(key));
    await subscribeAndProbe(local, local, topic);
    all.length = 0;

    await proxy.cut();
    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(2), WAIT);
    local.publish(topic, "while away");
    remote.publish(topic, "missed");
    await vi.waitFor(() => expect(direct.keys).toEqual(["missed"]), WAIT);
    expect(all).toEqual([]);

    await proxy.restore();
    await vi.waitFor(() => expect(all).toContain(""), WAIT);
    await vi.waitFor(() => expect(direct.keys).toEqual(["missed", "while away"]), WAIT);
    expect(all).not.toContain("missed");
    expect(onError).toHaveBeenCalledTimes(2);
    expect(onDrop).not.toHaveBeenCalled();
    await local.close();
    await proxy.cut();
  });

  test("starts and closes without Redis, and counts the dropped wake-ups", async () => {
    const { proxy, url } = await throughProxy();
    await proxy.cut();
    const { bus, onError, onDrop, topic } = open(url);
    bus.subscribe(topic, () => expect.unreachable());
    for (const key of ["a", "b", "a"]) bus.publish(topic, key);
    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(2), WAIT);
    await bus.close();
    expect(onDrop.mock.calls).toEqual([[2]]);
  });

  test("counts and reports a publish that Redis refuses", async () => {
    const admin = new Redis(redisUrl);
    const user = `test-${randomUUID()}`;
    try {
      await admin.call("ACL", "SETUSER", user, "on", ">secret", "+@all", "resetchannels", "&depute:allowed");
      const address = new URL(redisUrl);
      address.username = user;
      address.password = "secret";
      const { bus, onError, onDrop } = open(address.href);
      await subscribeAndProbe(bus, bus, "allowed");
      bus.publish("forbidden", "a");
      await vi.waitFor(() => expect(onDrop.mock.calls).toEqual([[1]]), WAIT);
      expect(onError).toHaveBeenCalledWith(expect.anything(), "Redis refused to publish");
      bus.subscribe("forbidden", () => expect.unreachable());
      await vi.waitFor(
        () =>
          expect(onError).toHaveBeenCalledWith(expect.anything(), "Redis refused to subscribe to forbidden"),
        WAIT,
      );
    } finally {
      await admin.call("ACL", "DELUSER", user);
      admin.disconnect();
    }
  });
});
