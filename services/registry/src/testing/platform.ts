import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { ManualClock, systemTimers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings } from "@depute/service";
import { createGrpcJsTransport } from "@depute/service/testing";
import { registry } from "../index.ts";
import { type FakeVerifier, fakeVerifier } from "./fake-verifier.ts";

/** Principals with a secret of the same name. */
export const ALICE = `${"A".repeat(42)}A`;
export const BOB = `${"B".repeat(42)}E`;
export const CAROL = `${"C".repeat(42)}I`;

/** A registry behind a real socket, for a client that shares no code with it, and a fake verifier. */
export async function startPlatform(args: readonly string[] = []) {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-registry-"));
  const credentialsFile = join(dataDir, "credentials.json");
  const secrets = [ALICE, BOB, CAROL].map((principal) => ({
    principal,
    sha256: createHash("sha256").update(principal).digest("hex"),
  }));
  writeFileSync(credentialsFile, JSON.stringify(secrets));

  const clock = new ManualClock();
  const verifier: FakeVerifier = { calls: [] };
  const woken: string[] = [];
  const about = { name: "test" };

  const start = async () => {
    const bus = createBus({ onError: (error) => fail(error) });
    bus.subscribe("agents", (key) => woken.push(key));
    const common = readSettings(
      commonSettings,
      [
        "--data-dir",
        dataDir,
        "--credentials-file",
        credentialsFile,
        "--registry-port",
        "0",
        "--log-level",
        "error",
      ],
      about,
    );
    const host = await hostServices({
      modules: [
        { module: registry, settings: readSettings(registry.settings, args, about), listen: true },
        { module: fakeVerifier(verifier), settings: {}, listen: false },
      ],
      common,
      bus,
      log: createLogger({ level: "silent", name: "test" }),
      clock,
      timers: systemTimers,
    });
    const transport = createGrpcJsTransport(new URL(host.urls.registry ?? "").host);
    return {
      publicUrl: host.urls.registry ?? "",
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
    verifier,
    get publicUrl() {
      return running.publicUrl;
    },
    /** Keys of the wake-ups so far. */
    woken,
    get agents() {
      return createClient(AgentService, running.transport);
    },
    get discovery() {
      return createClient(DiscoveryService, running.transport);
    },
    get offers() {
      return createClient(OfferService, running.transport);
    },
    get trust() {
      return createClient(TrustService, running.transport);
    },
    get policy() {
      return createClient(PolicyService, running.transport);
    },
    get organizations() {
      return createClient(OrganizationService, running.transport);
    },
    /** Ends the process's services and starts them again on the same files, some milliseconds later. */
    async restart(awayMs = 0) {
      await running.stop();
      clock.advance(awayMs);
      running = await start();
    },
    async stop() {
      await running.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** Call options of a caller with a principal of its own. */
export function as(principal: string) {
  return { headers: { authorization: `Bearer ${principal}` } };
}

function fail(error: unknown): never {
  throw error;
}
