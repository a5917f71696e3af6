import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { type Clock, ManualClock, systemTimers } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import type { StoreLocation } from "@depute/store";
import { commonSettings } from "../common-settings.ts";
import { hostServices } from "../host.ts";
import { createLogger } from "../log.ts";
import type { ServiceModule } from "../module.ts";
import { readSettings } from "../settings.ts";
import { storeAt } from "../store-place.ts";

export interface TestHostOptions<Time extends Clock = ManualClock> {
  /** The service under test: it listens, and keeps its files in a folder of the test. */
  module: ServiceModule;
  /** Flags of the service. */
  args?: readonly string[];
  /** Flags of every server. */
  commonArgs?: readonly string[];
  /** Stand-ins for the services that it calls, reached within the process. */
  fakes?: readonly ServiceModule[];
  /** Principals that have a secret: their own name. See `as`. */
  principals?: readonly string[];
  /** The folder for its files; one of its own, removed at the end, when absent. */
  dataDir?: string;
  /** Its time; a clock that stands still until the test moves it, when absent. */
  clock?: Time;
  /** Told each line of the log, from warnings up; the log is silent without it. */
  onLog?: (line: string) => void;
  /** Told the keys of wake-ups of a topic. */
  onWake?: { topic: string; listener: (key: string) => void };
}

/** A service behind a real socket, and a client that shares no code with it. */
export interface TestHost<Time extends Clock = ManualClock> {
  readonly clock: Time;
  readonly dataDir: string;
  /** Where a store of the service is, to be opened while it does not run. */
  storeAt(name: string): StoreLocation;
  /** Where it listens, e.g. `http://127.0.0.1:40123`; another port after a restart. */
  readonly url: string;
  /** Calls over gRPC. */
  readonly transport: Transport;
  client<Desc extends DescService>(service: Desc): Client<Desc>;
  /** Does something while the service does not run, and starts it again on the same files. */
  whileDown<T>(work: () => T | Promise<T>): Promise<T>;
  /** Stops the service and starts it again on the same files. */
  restart(): Promise<void>;
  /** Drains and stops the service, and leaves the client open. */
  stopServer(): Promise<void>;
  stop(): Promise<void>;
}

const about = { name: "test" };

/** Starts a service for a test. */
export async function startTestHost<Time extends Clock = ManualClock>(
  options: TestHostOptions<Time>,
): Promise<TestHost<Time>> {
  const { module, args = [], commonArgs = [], fakes = [], principals = [], onLog, onWake } = options;
  // Without a clock there is nothing to infer its type from, so that `Time` is `ManualClock`.
  const clock = options.clock ?? (new ManualClock() as Clock as Time);
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), `depute-${module.name}-`));
  const credentialsFile = join(dataDir, "credentials.json");
  writeFileSync(credentialsFile, JSON.stringify(principals.map(withSecret)));

  const where = [
    "--data-dir",
    dataDir,
    `--${module.name}-port`,
    "0",
    "--credentials-file",
    credentialsFile,
    // With DEPUTE_POSTGRES_URL the same folder means the same schemas.
    "--postgres-schema-prefix",
    `test_${createHash("sha256").update(dataDir).digest("hex").slice(0, 24)}`,
  ];
  const common = readSettings(commonSettings, [...where, ...commonArgs], about);

  const start = async () => {
    const bus = createBus({ onError: fail });
    if (onWake !== undefined) bus.subscribe(onWake.topic, onWake.listener);
    const log = createLogger({
      level: onLog === undefined ? "silent" : "warn",
      name: "test",
      destination: { write: (line) => onLog?.(line) },
    });
    const host = await hostServices({
      modules: [
        { module, settings: readSettings(module.settings, args, about), listen: true },
        ...fakes.map((fake) => ({ module: fake, settings: {}, listen: false })),
      ],
      common,
      bus,
      log,
      clock,
      timers: systemTimers,
    });
    const url = host.urls[module.name] ?? "";
    const transport = createGrpcJsTransport(new URL(url).host);
    let stopped: Promise<void> | undefined;
    const stopServer = () => {
      stopped ??= host.stop().then(() => bus.close());
      return stopped;
    };
    return {
      url,
      transport,
      stopServer,
      async stop() {
        transport.close();
        await stopServer();
      },
    };
  };
  const removeFolder = () => {
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  };
  let running = await start().catch((error: unknown) => {
    removeFolder();
    throw error;
  });

  const whileDown = async <T>(work: () => T | Promise<T>): Promise<T> => {
    await running.stop();
    const result = await work();
    running = await start();
    return result;
  };

  return {
    clock,
    dataDir,
    storeAt: (name) => storeAt(common, name),
    get url() {
      return running.url;
    },
    get transport() {
      return running.transport;
    },
    client: (service) => createClient(service, running.transport),
    whileDown,
    restart: () => whileDown(() => {}),
    stopServer: () => running.stopServer(),
    async stop() {
      await running.stop();
      removeFolder();
    },
  };
}

/** Call options of a caller with a principal of its own. */
export function as(principal: string): CallOptions {
  return { headers: { authorization: `Bearer ${principal}` } };
}

function withSecret(principal: string) {
  return { principal, sha256: createHash("sha256").update(principal).digest("hex") };
}

function fail(error: unknown): never {
  throw error;
}
