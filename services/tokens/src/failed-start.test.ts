import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { ManualClock, systemTimers, type Timers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings, storeAt } from "@depute/service";
import { openStore } from "@depute/store";
import { freeSchema, postgresForTests } from "@depute/store/testing";
import { afterAll, describe, expect, test } from "vitest";
import { tokens } from "./index.ts";
import { migrations } from "./store/migrations.ts";
import { alice, CONTRACT, id, newRequest, READ } from "./testing/holders.ts";

const postgres = await postgresForTests();
const folder = mkdtempSync(join(tmpdir(), "depute-failed-start-"));
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true });
});

const masterKeyFile = join(folder, "configured-master.key");
writeFileSync(masterKeyFile, randomBytes(32).toString("base64url"), { mode: 0o600 });

const REPLICA = [
  ...["--replicated", "true", "--postgres-url", postgres?.url ?? ""],
  ...["--master-key-file", masterKeyFile],
];
const STORES = [
  { store: "SQLite", args: () => ["--postgres-url", ""] },
  ...(postgres === undefined
    ? []
    : [
        {
          store: "Postgres with replicas",
          args: () => [...REPLICA, "--postgres-schema-prefix", freeSchema().slice(0, 20)],
        },
      ]),
];

/** Faults of the store that stop the service's start after other parts of the service have started. */
const FAULTS = [
  {
    fault: "a kept key that does not open",
    sql: "UPDATE kept_keys SET sealed = 'AAAA' || sealed",
    refusal: "the master key did not seal",
  },
  {
    fault: "a revocation log that is shorter than its checkpoint",
    sql: "UPDATE revocations SET sequence = sequence + 1000",
    refusal: "revocations are missing",
  },
];

describe.each(STORES)("on $store", ({ args }) => {
  test.each(FAULTS)("a start that fails leaves no work behind: $fault", async ({ sql, refusal }) => {
    const dataDir = mkdtempSync(join(folder, "data-"));
    const program = { name: "test" };
    const common = readSettings(commonSettings, ["--data-dir", dataDir, ...args()], program);
    const module = { module: tokens, settings: readSettings(tokens.settings, [], program), listen: false };
    const logged: string[] = [];
    const destination = { write: (line: string) => void logged.push(line) };
    const log = createLogger({ level: "warn", name: "test", destination });
    const bus = await createBus({ onError: (error) => logged.push(String(error)) });
    const start = (timers: Timers) => hostServices({ modules: [module], common, bus, log, timers });

    const host = await start(systemTimers);
    const clientOf = host.connect("tokens");
    await createClient(KeyService, clientOf).createKey({ requestId: newRequest() });
    const minted = { delegatee: id(alice), capabilities: [READ], contractId: CONTRACT };
    const { revocationId } = await createClient(TokenService, clientOf).mintToken({
      ...{ ...minted, requestId: newRequest(), maxBudgetMicrocents: 1000n },
    });
    const revocations = createClient(RevocationService, clientOf);
    await revocations.revokeMintedToken({ revocationId, scope: RevocationScope.BLOCK });
    await host.stop();
    const place = { ...storeAt(common, "tokens"), isShared: common.replicated };
    const store = await openStore({ ...place, migrations, onError: (error) => logged.push(String(error)) });
    await store.write((tx) => tx.run(sql));
    await store.close();

    const clock = new ManualClock(Date.now());
    await expect(start(clock)).rejects.toThrow(refusal);
    expect(clock.pending).toBe(0);
    logged.length = 0;
    // If a part of the service still ran, it would find its store closed and log an error.
    for (let seconds = 0; seconds < 30; seconds++) {
      clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(logged).toEqual([]);
    await bus.close();
  });
});
