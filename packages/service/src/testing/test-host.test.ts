import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CallOptions } from "@connectrpc/connect";
import { type Clock, ErrorReason, systemClock } from "@depute/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { fromConnectError } from "../errors-on-wire.ts";
import { defineService, type ServiceModule } from "../module.ts";
import { EchoService, echoRoutes } from "./echo.ts";
import { as, startTestHost, type TestHostOptions } from "./test-host.ts";

const ALICE = `${"A".repeat(42)}A`;

/** A service that counts its starts in a file, and sends the count as the key of a wake-up of the topic "starts". */
const counting = defineService({
  name: "registry",
  settings: {},
  descriptors: [],
  async start({ bus, dataDir }) {
    const file = join(dataDir, "starts");
    const starts = existsSync(file) ? Number(readFileSync(file, "utf8")) + 1 : 1;
    writeFileSync(file, String(starts));
    bus.publish("starts", String(starts));
    return { routes: echoRoutes({ started: 0, ended: [] }), close: async () => {} };
  },
});

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function start(options: Partial<TestHostOptions> = {}) {
  const host = await startTestHost({ module: counting, ...options });
  ends.push(() => host.stop());
  return host;
}

describe("startTestHost", () => {
  it("answers, and again after a restart on the same files", async () => {
    const host = await start();
    const starts = () => readFileSync(join(host.dataDir, "starts"), "utf8");
    const ask = () => host.client(EchoService).unary({ text: "hello" });
    expect(await ask()).toMatchObject({ text: "hello" });
    expect(starts()).toBe("1");

    await host.restart();
    expect(await ask()).toMatchObject({ text: "hello" });
    expect(starts()).toBe("2");
  });

  it("does not run while it is down", async () => {
    const host = await start();
    const { url } = host;
    const refused = await host.whileDown(() =>
      fetch(url).then(
        () => false,
        () => true,
      ),
    );
    expect(refused).toBe(true);
    expect((await fetch(host.url)).status).toBe(404);
  });

  it("removes the folder that it created, and keeps the test's", async () => {
    const sharedDir = mkdtempSync(join(tmpdir(), "depute-test-host-"));
    ends.push(() => rmSync(sharedDir, { recursive: true, force: true }));
    const [ownHost, onGiven] = [await start(), await start({ dataDir: sharedDir })];
    expect(onGiven.dataDir).toBe(sharedDir);
    expect(existsSync(ownHost.dataDir)).toBe(true);

    await ownHost.stop();
    await onGiven.stop();
    expect(existsSync(ownHost.dataDir)).toBe(false);
    expect(existsSync(join(sharedDir, "starts"))).toBe(true);
  });

  it("leaves no folder of a service that does not start", async () => {
    const folders: string[] = [];
    const module: ServiceModule = {
      ...counting,
      async start({ dataDir }) {
        folders.push(dataDir);
        throw new Error("it does not start");
      },
    };
    await expect(startTestHost({ module })).rejects.toThrow("it does not start");
    expect(folders.map((folder) => existsSync(folder))).toEqual([false]);
  });

  it("authenticates a principal by its secret, and no other", async () => {
    const host = await start({ principals: [ALICE] });
    const readCaller = async (options?: CallOptions): Promise<unknown> =>
      JSON.parse((await host.client(EchoService).unary({ do: "caller" }, options)).text);
    expect(await readCaller(as(ALICE))).toMatchObject({ principal: ALICE });
    expect(await readCaller()).not.toMatchObject({ principal: ALICE });
    const stranger = await readCaller(as("B".repeat(43))).catch(fromConnectError);
    expect(stranger).toMatchObject({ reason: ErrorReason.UNAUTHENTICATED });
  });

  it("reports wake-ups, also after a restart", async () => {
    const woken: string[] = [];
    const host = await start({ onWake: { topic: "starts", listener: (key) => woken.push(key) } });
    await vi.waitFor(() => expect(woken).toEqual(["1"]));
    await host.restart();
    await vi.waitFor(() => expect(woken).toEqual(["1", "2"]));
  });

  it("gives the service the test's clock", async () => {
    const clocks: Clock[] = [];
    const module: ServiceModule = {
      ...counting,
      start(deps) {
        clocks.push(deps.clock);
        return counting.start(deps, {});
      },
    };
    const standing = await start({ module });
    const running = await startTestHost({ module, clock: systemClock });
    ends.push(() => running.stop());
    expect(clocks).toEqual([standing.clock, systemClock]);
    expect(running.clock).toBe(systemClock);
  });
});
