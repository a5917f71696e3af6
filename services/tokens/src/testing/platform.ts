import { DelegationService } from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { SessionService } from "@depute/contracts/depute/tokens/v1/session_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { startTestHost } from "@depute/service/testing";
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
 * @param principals have a credential
 */
export async function startPlatform(
  args: readonly string[] = [],
  commonArgs: readonly string[] = [],
  principals: readonly string[] = [],
) {
  const logged: string[] = [];
  const options = {
    module: tokens,
    args,
    principals,
    commonArgs: ["--public-url", PUBLIC_URL, ...commonArgs],
    onLog: (line: string) => void logged.push(line),
  };
  const host = await startTestHost(options);
  const { clock, dataDir, whileDown, restart, stop } = host;
  const openOwnStore = () => openStore({ ...host.storeAt("tokens"), migrations, onError: fail });

  return {
    clock,
    dataDir,
    /** Opens the service's store, while it does not run. */
    openOwnStore,
    /** Lines of the log, from warnings up. */
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
    get sessions() {
      return host.client(SessionService);
    },
    get spend() {
      return host.client(SpendService);
    },
    /** Starts another one on the same files. */
    start: () => startTestHost({ ...options, clock, dataDir }),
    whileDown,
    restart,
    /** Ends the service, and reads what it has recorded of its decisions. */
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
