import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { SessionService } from "@depute/contracts/depute/tokens/v1/session_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { ManualClock, systemTimers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings } from "@depute/service";
import { createGrpcJsTransport } from "@depute/service/testing";
import { openStore } from "@depute/store";
import { tokens } from "../index.ts";
import { readDecisions } from "../store/audit-rows.ts";
import { migrations } from "../store/migrations.ts";

/** Where the service under test says that it is. */
export const PUBLIC_URL = "https://depute.example";

/**
 * The tokens service behind a real socket, for a client that shares no code with it.
 *
 * @param args flags of the tokens service and of its process
 */
export async function startPlatform(args: readonly string[] = [], commonArgs: readonly string[] = []) {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-tokens-"));
  const clock = new ManualClock();
  const logged: string[] = [];
  const about = { name: "test" };
  const where = ["--data-dir", dataDir, "--tokens-port", "0", "--public-url", PUBLIC_URL];

  const start = async () => {
    const bus = createBus({ onError: fail });
    const host = await hostServices({
      modules: [{ module: tokens, settings: readSettings(tokens.settings, args, about), listen: true }],
      common: readSettings(commonSettings, [...where, ...commonArgs], about),
      bus,
      log: createLogger({
        level: "warn",
        name: "test",
        destination: { write: (line) => void logged.push(line) },
      }),
      clock,
      timers: systemTimers,
    });
    const transport = createGrpcJsTransport(new URL(host.urls.tokens ?? "").host);
    return {
      transport,
      async stop() {
        transport.close();
        await host.stop();
        await bus.close();
      },
    };
  };
  let running = await start();

  return {
    clock,
    dataDir,
    /** Lines of the log, from warnings up. */
    logged,
    get tokens() {
      return createClient(TokenService, running.transport);
    },
    get revocations() {
      return createClient(RevocationService, running.transport);
    },
    get delegations() {
      return createClient(DelegationService, running.transport);
    },
    get keys() {
      return createClient(KeyService, running.transport);
    },
    get sessions() {
      return createClient(SessionService, running.transport);
    },
    get spend() {
      return createClient(SpendService, running.transport);
    },
    /** Starts another one on the same files. */
    start,
    /** Does something while the service does not run. */
    async whileDown<T>(work: () => Promise<T>): Promise<T> {
      await running.stop();
      const result = await work();
      running = await start();
      return result;
    },
    /** Ends the service and starts it again on the same files. */
    async restart() {
      await running.stop();
      running = await start();
    },
    /** Ends the service, and reads what it has recorded of its decisions. */
    async audit() {
      await running.stop();
      const store = await openStore({ file: join(dataDir, "tokens.sqlite"), migrations, onError: fail });
      const decisions = await store.read((tx) => readDecisions(tx, 0, 10_000));
      await store.close();
      running = await start();
      return decisions;
    },
    async stop() {
      await running.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

function fail(error: unknown): never {
  throw error;
}
