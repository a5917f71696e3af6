import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Bus } from "@depute/bus";
import { type DeputeError, ErrorReason } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { forwardHeaders, ownHeaders } from "./call-headers.ts";
import { type CommonSettings, commonSettings } from "./common-settings.ts";
import { fromConnectError } from "./errors-on-wire.ts";
import { HOP } from "./hop-headers.ts";
import { hostServices } from "./host.ts";
import type { Host } from "./host-options.ts";
import { CHECK_INTERVAL_MS } from "./identities/identities.ts";
import { createLogger } from "./log.ts";
import { defineService, type ServiceDeps, type ServiceModule } from "./module.ts";
import type { ModuleName } from "./names.ts";
import { readSettings, SettingsError } from "./settings.ts";
import { EchoService, type EchoTrace, echoClient, echoRoutes } from "./testing/echo.ts";
import { exchange } from "./testing/exchange.ts";

const log = createLogger({ level: "silent", name: "test" });
const bus: Bus = { publish() {}, subscribe: () => () => {}, close: async () => {} };
const hosts: Host[] = [];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-host-"));
});

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.stop()));
  rmSync(folder, { recursive: true });
});

function common(...args: string[]): CommonSettings {
  const settings = readSettings(commonSettings, args, { name: "test" });
  return {
    ...settings,
    dataDir: join(folder, "data"),
    gatewayPort: 0,
    registryPort: 0,
    tasksPort: 0,
    tokensPort: 0,
    drainTimeout: 50,
  };
}

interface EchoState {
  deps?: ServiceDeps;
  closed: boolean;
}

/** Returns a service that echoes its requests. */
function echo(name: ModuleName, state: EchoState = { closed: false }): ServiceModule {
  const trace: EchoTrace = { started: 0, ended: [] };
  return defineService({
    name,
    settings: {},
    descriptors: [EchoService],
    async start(deps) {
      state.deps = deps;
      return {
        routes: echoRoutes(trace),
        async close() {
          state.closed = true;
        },
      };
    },
  });
}

/** A service that forwards its requests to the tasks service: on behalf of its caller, or on its own behalf. */
const front: ServiceModule = defineService({
  name: "gateway",
  settings: {},
  descriptors: [EchoService],
  async start(deps) {
    const tasks = echoClient(deps.connect("tasks"));
    return {
      routes: (router) =>
        void router.service(EchoService, {
          unary: (request, context) =>
            tasks.unary(request, {
              headers: request.text === "own" ? ownHeaders("") : forwardHeaders(context),
            }),
          server: (request, context) =>
            tasks.server(request, { signal: context.signal, headers: forwardHeaders(context) }),
        }),
      async close() {},
    };
  },
});

async function host(modules: ServiceModule[], settings: CommonSettings): Promise<Host> {
  const hosted = modules.map((module) => ({ module, settings: {}, listen: true }));
  const started = await hostServices({ modules: hosted, common: settings, bus, log });
  hosts.push(started);
  return started;
}

function overHttp(url: string | undefined): Transport {
  return createConnectTransport({ baseUrl: url ?? "", httpVersion: "2" });
}

const failure = async (call: Promise<unknown>): Promise<DeputeError> =>
  fromConnectError(await call.then(() => new Error("it did not fail")).catch((caught: unknown) => caught));

/**
 * Two ways to host the services `front` and `tasks`: in one process, or in two processes that know each other's
 * address.
 */
const shapes = {
  async together(settings: CommonSettings) {
    return (await host([front, echo("tasks")], settings)).urls.gateway;
  },
  async apart(settings: CommonSettings) {
    const tasks = await host([echo("tasks")], settings);
    return (await host([front], { ...settings, tasksUrl: [tasks.urls.tasks ?? ""] })).urls.gateway;
  },
};

function secrets(): Partial<CommonSettings> {
  const credentialsFile = join(folder, "credentials.json");
  const sha256 = createHash("sha256").update("s3cret").digest("hex");
  writeFileSync(credentialsFile, JSON.stringify([{ principal: "ada", sha256 }]));
  return { auth: "required", credentialsFile, internalSecret: "between-us" };
}

// Only the adapter sends an encoding header with an uncompressed response, so this header shows that the adapter served
// the call.
it.each([
  [[], undefined],
  [["--fast-path=false"], "gzip"],
])("with %j a plain call is served by the configured path", async (args, encoding) => {
  const { urls } = await host([echo("tasks")], common(...args));
  const session = connect(urls.tasks ?? "");
  const answer = await exchange(session, {
    headers: {
      ":path": "/depute.testing.EchoService/Unary",
      "content-type": "application/grpc",
      "grpc-accept-encoding": "gzip",
    },
    body: [new Uint8Array(5)],
  });
  session.close();
  expect(answer.trailers["grpc-status"]).toBe("0");
  expect(answer.headers["grpc-encoding"]).toBe(encoding);
});

it("a changed credentials file takes effect without a restart", async () => {
  const settings = { ...common(), ...secrets() };
  const { urls } = await host([echo("tasks")], settings);
  const statusOf = async (secret: string) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
    const url = `${urls.tasks}/depute.testing.EchoService/Unary`;
    return (await fetch(url, { method: "POST", headers, body: "{}" })).status;
  };
  expect([await statusOf("s3cret"), await statusOf("next")]).toEqual([200, 401]);
  const sha256 = createHash("sha256").update("next").digest("hex");
  writeFileSync(settings.credentialsFile, JSON.stringify([{ principal: "ada", sha256 }]));
  await expect.poll(() => statusOf("next"), { timeout: 10_000 }).toBe(200);
  expect(await statusOf("s3cret")).toBe(401);
}, 20_000);

it("processes change to a new internal secret one by one without a refused call", async () => {
  const hostWith = async (file: string, modules: Parameters<typeof host>[0], settings: CommonSettings) => {
    vi.stubEnv("DEPUTE_INTERNAL_SECRET_FILE", join(folder, file));
    return host(modules, settings);
  };
  const write = (file: string, ...lines: string[]) =>
    writeFileSync(join(folder, file), `${lines.join("\n")}\n`);
  for (const file of ["front.secret", "tasks.secret"]) write(file, "between-us");
  const settings = { ...common(), ...secrets() };
  const tasks = await hostWith("tasks.secret", [echo("tasks")], settings);
  const { urls } = await hostWith("front.secret", [front], {
    ...settings,
    tasksUrl: [tasks.urls.tasks ?? ""],
  });
  vi.unstubAllEnvs();
  const client = echoClient(overHttp(urls.gateway));
  const headers = { authorization: "Bearer s3cret" };
  // The front service makes this call on its own behalf, so only the internal secret authenticates it.
  const call = async () => (await client.unary({ text: "own" }, { headers })).text;
  const pause = () => new Promise((resolve) => setTimeout(resolve, CHECK_INTERVAL_MS + 500));
  expect(await call()).toBe("own");
  const steps: [string, ...string[]][] = [
    ["tasks.secret", "between-us", "next"],
    ["front.secret", "next", "between-us"],
    ["tasks.secret", "next"],
    ["front.secret", "next"],
  ];
  for (const [file, ...lines] of steps) {
    write(file, ...lines);
    await pause();
    expect(await call()).toBe("own");
  }
  // The old secret is no longer accepted: a call with it does not count as a call of the platform.
  write("front.secret", "between-us");
  await pause();
  await expect(call()).rejects.toThrow();
}, 40_000);

describe.each(Object.entries(shapes))("services %s", (_, start) => {
  it("call each other with the caller's request id", async () => {
    const client = echoClient(overHttp(await start(common())));
    expect((await client.unary({ text: "hello" })).text).toBe("hello");
    const headers = { "depute-request-id": "r-1" };
    expect((await client.unary({ do: "request id" }, { headers })).text).toBe("r-1");
  });

  it("keep a refusal's reason over the hop", async () => {
    const client = echoClient(overHttp(await start(common())));
    expect(await failure(client.unary({ do: "refuse" }))).toMatchObject({
      reason: ErrorReason.TASK_NOT_FOUND,
      metadata: { task: "t-1" },
      violations: [{ field: "text" }],
    });
    expect((await failure(client.unary({ do: "crash" }))).reason).toBe(ErrorReason.INTERNAL);
  });

  it("get the caller and the address of the client's request", async () => {
    const url = await start({ ...common(), ...secrets() });
    const ask = async (headers: Record<string, string>) =>
      JSON.parse((await echoClient(overHttp(url)).unary({ do: "caller" }, { headers })).text);
    const htu = `${url}/depute.testing.EchoService/Unary`;
    expect(await ask({ "x-api-key": "s3cret" })).toEqual({
      kind: "credential",
      principal: "ada",
      htm: "POST",
      htu,
    });
    expect(await ask({ authorization: "DPoP tok", dpop: "prf" })).toEqual({
      kind: "bound",
      principal: "",
      token: "tok",
      proof: "prf",
      htm: "POST",
      htu,
    });
  });

  it("ignore hop headers of a client", async () => {
    const client = echoClient(overHttp(await start({ ...common(), ...secrets() })));
    const headers = { [HOP.origin]: "service", [HOP.internal]: "guessed" };
    expect((await failure(client.unary({ do: "caller" }, { headers }))).reason).toBe(
      ErrorReason.UNAUTHENTICATED,
    );
  });

  it("call each other as themselves", async () => {
    const client = echoClient(overHttp(await start({ ...common(), ...secrets() })));
    const answer = await client.unary({ text: "own", do: "caller" }, { headers: { "x-api-key": "s3cret" } });
    expect(JSON.parse(answer.text)).toMatchObject({ kind: "local", principal: "local" });
  });

  it("forward streams", async () => {
    const client = echoClient(overHttp(await start(common())));
    const texts: string[] = [];
    for await (const { text } of client.server({ text: "n" })) texts.push(text);
    expect(texts).toEqual(["n1", "n2", "n3"]);
  });
});

describe("hostServices", () => {
  it("starts without the other services, and calls to them fail as unavailable", async () => {
    const { urls } = await host([front], { ...common(), tasksUrl: ["http://127.0.0.1:1"] });
    expect(await failure(echoClient(overHttp(urls.gateway)).unary({ text: "x" }))).toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
      metadata: { service: "tasks" },
    });
  });

  it("gives UNAVAILABLE for its own service before that has started", async () => {
    let early: Promise<unknown> | undefined;
    const eager = defineService({
      name: "registry",
      settings: {},
      descriptors: [],
      async start(deps) {
        early = failure(echoClient(deps.connect("tasks")).unary({}));
        await early;
        return { routes() {}, async close() {} };
      },
    });
    const started = await host([eager, echo("tasks")], common());
    expect(await early).toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
      metadata: { service: "tasks" },
    });
    expect((await echoClient(started.connect("tasks")).unary({ text: "now" })).text).toBe("now");
  });

  it("gives each service its dependencies", async () => {
    const state: EchoState = { closed: false };
    const { urls } = await host([echo("tasks", state)], common());
    expect(state.deps?.publicUrl).toBe(urls.tasks);
    expect(state.deps?.dataDir).toBe(join(folder, "data"));
    expect(state.deps?.stopping.aborted).toBe(false);
  });

  it("stops once: signals, drains, closes", async () => {
    const state: EchoState = { closed: false };
    const started = await host([echo("tasks", state)], common());
    const [first, second] = [started.stop(), started.stop()];
    expect(first).toBe(second);
    expect(state.deps?.stopping.aborted).toBe(true);
    await first;
    expect(state.closed).toBe(true);
    await expect(fetch(started.urls.tasks ?? "")).rejects.toThrow();
  });

  it("closes a service that may call another one before that one", async () => {
    const state: EchoState = { closed: false };
    let wasClosed: boolean | undefined;
    const last = defineService({
      name: "gateway",
      settings: {},
      descriptors: [],
      async start(deps) {
        const tasks = echoClient(deps.connect("tasks"));
        const close = async () => {
          await new Promise((resolve) => setImmediate(resolve));
          await tasks.unary({ text: "last" });
          wasClosed = state.closed;
        };
        return { routes() {}, close };
      },
    });
    const started = await host([echo("tasks", state), last], common());
    await started.stop();
    expect([wasClosed, state.closed]).toEqual([false, true]);
  });

  it("closes the other services if one cannot close", async () => {
    const state: EchoState = { closed: false };
    const broken = defineService({
      name: "gateway",
      settings: {},
      descriptors: [],
      start: async () => ({ routes() {}, close: () => Promise.reject(new Error("no disk")) }),
    });
    const started = await host([echo("tasks", state), broken], common());
    await started.stop();
    expect(state.closed).toBe(true);
  });

  it("closes the started parts when another part fails", async () => {
    const state: EchoState = { closed: false };
    const broken: ServiceModule = {
      name: "registry",
      settings: {},
      descriptors: [],
      start: () => Promise.reject(new Error("no store")),
    };
    await expect(host([echo("tasks", state), broken], common())).rejects.toThrow("no store");
    expect(state.closed).toBe(true);
    const { urls } = await host([echo("tasks")], common());
    const conflictingSettings = { ...common(), registryPort: Number(new URL(urls.tasks ?? "").port) };
    state.closed = false;
    await expect(host([echo("registry", state)], conflictingSettings)).rejects.toThrow("EADDRINUSE");
    expect(state.closed).toBe(true);
  });

  it.each(["0.0.0.0", "::", "192.0.2.1", "example.org", ""])(
    "refuses to serve %j without authentication",
    async (address) => {
      const start = host([echo("tasks")], { ...common(), host: address });
      await expect(start).rejects.toThrow(SettingsError);
      await expect(start).rejects.toThrow("DEPUTE_AUTH");
    },
  );

  it("refuses separate processes without an internal secret", async () => {
    const settings = { ...common(), ...secrets(), internalSecret: "" };
    await expect(host([echo("tasks")], settings)).rejects.toThrow("DEPUTE_INTERNAL_SECRET");
  });

  it("counts calls in its metrics", async () => {
    const { urls, metrics } = await host([echo("tasks")], common());
    const client = echoClient(overHttp(urls.tasks));
    await client.unary({});
    await client.unary({ do: "refuse" }).catch(() => {});
    for await (const _ of client.server({}));
    const text = await metrics.metrics();
    const line = (method: string, code: string) =>
      `depute_rpc_requests_total{service="depute.testing.EchoService",method="${method}",code="${code}"} 1`;
    expect(text).toContain(line("Unary", "OK"));
    expect(text).toContain(line("Unary", "NOT_FOUND"));
    expect(text).toContain(line("Server", "OK"));
    expect(text).toContain('depute_rpc_in_flight{service="depute.testing.EchoService",method="Server"} 0');
    expect(text).toContain(
      'depute_rpc_duration_seconds_count{service="depute.testing.EchoService",method="Unary"} 2',
    );
  });
});

describe("the port of the metrics", () => {
  it("serves the metrics and the health of the process, and other ports no longer serve metrics", async () => {
    const metricsPort = await freePort();
    const settings = { ...common("--metrics-token", "scrape"), metricsPort };
    const { urls } = await host([echo("tasks"), echo("registry")], settings);
    const bearer = { headers: { authorization: "Bearer scrape" } };
    const status = async (url: string, init?: RequestInit) => (await fetch(url, init)).status;
    expect(await status(`http://127.0.0.1:${metricsPort}/metrics`, bearer)).toBe(200);
    expect(await status(`http://127.0.0.1:${metricsPort}/metrics`)).toBe(401);
    expect(await status(`http://127.0.0.1:${metricsPort}/livez`)).toBe(200);
    expect(await status(`http://127.0.0.1:${metricsPort}/readyz`)).toBe(200);
    expect(await status(`${urls.tasks}/metrics`, bearer)).toBe(404);
    expect(await status(`${urls.tasks}/readyz`)).toBe(200);
  });
});

describe("trusted proxies", () => {
  it.each(["10.0.0.0/33", "proxy.example", "10.0.0.0/", "::/129", "1.2.3.4/8/8"])(
    "%s is refused",
    async (proxy) => {
      await expect(host([echo("tasks")], common("--trusted-proxies", proxy))).rejects.toThrow(SettingsError);
    },
  );

  it("addresses, networks and UNIX sockets are trusted", async () => {
    await host([echo("tasks")], common("--trusted-proxies", "10.0.0.1,fd00::/8,unix"));
  });
});

/** Returns a port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
