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
  /** The tested service. It listens on a port, and stores its files in a folder of the test. */
  module: ServiceModule;
  /** Command-line flags for the settings of the service. */
  args?: readonly string[];
  /** Command-line flags for the settings of every server. */
  commonArgs?: readonly string[];
  /** Fakes of the services that the tested service calls, in the same process. */
  fakes?: readonly ServiceModule[];
  /** Principals with a configured secret, which equals their name. See `as`. */
  principals?: readonly string[];
  /** Organizations by principal. A principal that is not listed has none. */
  organizations?: Readonly<Record<string, string>>;
  /** The folder for the service's files; by default a temporary folder, which is removed at the end. */
  dataDir?: string;
  /** The service's clock; by default a clock that only the test moves. */
  clock?: Time;
  /** Receives each log line of level warn and above. If absent, nothing is logged. */
  onLog?: (line: string) => void;
  /** Receives the keys of a topic's wake-ups. */
  onWake?: { topic: string; listener: (key: string) => void };
}

/** A service behind a real socket, and an independent client for it. */
export interface TestHost<Time extends Clock = ManualClock> {
  readonly clock: Time;
  readonly dataDir: string;
  /** Returns the location of a store of the service, to open it while the service does not run. */
  storeAt(name: string): StoreLocation;
  /** The service's address, e.g. `http://127.0.0.1:40123`. The port changes at a restart. */
  readonly url: string;
  /** A gRPC transport to the service. */
  readonly transport: Transport;
  client<Desc extends DescService>(service: Desc): Client<Desc>;
  /** Stops the service, runs `work`, and starts the service again on the same files. */
  whileDown<T>(work: () => T | Promise<T>): Promise<T>;
  /** Stops the service and starts it again on the same files. */
  restart(): Promise<void>;
  /** Drains and stops the service, and leaves the client open. */
  stopServer(): Promise<void>;
  stop(): Promise<void>;
}

const program = { name: "test" };

/** Starts a service for a test. */
export async function startTestHost<Time extends Clock = ManualClock>(
  options: TestHostOptions<Time>,
): Promise<TestHost<Time>> {
  const {
    module,
    args = [],
    commonArgs = [],
    fakes = [],
    principals = [],
    organizations = {},
    onLog,
    onWake,
  } = options;
  // Without the option `clock`, TypeScript infers `Time` as its default `ManualClock`, so this cast is safe.
  const clock = options.clock ?? (new ManualClock() as Clock as Time);
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), `depute-${module.name}-`));
  const credentialsFile = join(dataDir, "credentials.json");
  writeFileSync(
    credentialsFile,
    JSON.stringify(principals.map((principal) => withSecret(principal, organizations[principal]))),
  );

  const where = [
    "--data-dir",
    dataDir,
    `--${module.name}-port`,
    "0",
    "--credentials-file",
    credentialsFile,
    // With DEPUTE_POSTGRES_URL, the schema prefix is derived from the data folder. So a host that restarts with the
    // same folder finds its data, and hosts with different folders share no data.
    "--postgres-schema-prefix",
    `test_${createHash("sha256").update(dataDir).digest("hex").slice(0, 24)}`,
  ];
  const common = readSettings(commonSettings, [...where, ...commonArgs], program);

  const start = async () => {
    const bus = await createBus({ onError: fail });
    if (onWake !== undefined) bus.subscribe(onWake.topic, onWake.listener);
    const log = createLogger({
      level: onLog === undefined ? "silent" : "warn",
      name: "test",
      destination: { write: (line) => onLog?.(line) },
    });
    const host = await hostServices({
      modules: [
        { module, settings: readSettings(module.settings, args, program), listen: true },
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

/** Returns call options with the secret of a principal of {@link TestHostOptions.principals}. */
export function as(principal: string): CallOptions {
  return { headers: { authorization: `Bearer ${principal}` } };
}

function withSecret(principal: string, organization?: string) {
  return { principal, organization, sha256: createHash("sha256").update(principal).digest("hex") };
}

function fail(error: unknown): never {
  throw error;
}
