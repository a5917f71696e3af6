import { AuditService } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { RootKeyService } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { ManualClock } from "@depute/core";
import { startTestHost } from "@depute/service/testing";
import { openStore } from "@depute/store";
import { tokens } from "../index.ts";
import { readDecisions } from "../store/audit-rows.ts";
import { migrations } from "../store/migrations.ts";

/** The public address of the tested service. */
export const PUBLIC_URL = "https://depute.example";

/**
 * Starts the tokens service on a real socket.
 *
 * @param args flags of the tokens service
 * @param commonArgs flags of the process
 * @param principals principals with a credential
 * @param clock the clock of the service
 */
export async function startPlatform(
  args: readonly string[] = [],
  commonArgs: readonly string[] = [],
  principals: readonly string[] = [],
  clock = new ManualClock(),
) {
  const logged: string[] = [];
  const options = {
    module: tokens,
    args,
    principals,
    clock,
    commonArgs: ["--public-url", PUBLIC_URL, ...commonArgs],
    onLog: (line: string) => void logged.push(line),
  };
  const host = await startTestHost(options);
  const { dataDir, whileDown, restart, stop } = host;
  const openOwnStore = () => openStore({ ...host.storeAt("tokens"), migrations, onError: fail });

  return {
    clock,
    dataDir,
    get transport() {
      return host.transport;
    },
    /** Opens the store of the stopped service. */
    openOwnStore,
    /** The service's log lines at warning level and above. */
    logged,
    get tokens() {
      return host.client(TokenService);
    },
    get revocations() {
      return host.client(RevocationService);
    },
    get delegations() {
      return host.client(DelegationService);
    },
    get keys() {
      return host.client(KeyService);
    },
    get rootKeys() {
      return host.client(RootKeyService);
    },
    get sessions() {
      return host.client(HolderSessionService);
    },
    get auditRecords() {
      return host.client(AuditService);
    },
    get spend() {
      return host.client(SpendService);
    },
    /** Starts the service again on the same files. */
    start: () => startTestHost({ ...options, dataDir }),
    whileDown,
    restart,
    /** Stops the service, and returns the decisions in its store. */
    audit: () =>
      whileDown(async () => {
        const store = await openOwnStore();
        const decisions = await store.read((tx) => readDecisions(tx, 0, 10_000));
        await store.close();
        return decisions;
      }),
    stop,
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

function fail(error: unknown): never {
  throw error;
}
