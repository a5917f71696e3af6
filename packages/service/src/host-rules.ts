import type { CommonSettings } from "./common-settings.ts";
import { assertBindable, assertDoorSettings } from "./door.ts";
import type { ServiceModule } from "./module.ts";
import { SERVICES } from "./names.ts";
import { SettingsError } from "./settings.ts";

interface Hosted {
  readonly module: ServiceModule;
}

/**
 * Refuses an address that other machines could reach without credentials, and malformed names of hosts and origins.
 *
 * @param listens whether the process listens
 * @throws SettingsError
 */
export function assertDoor(common: CommonSettings, listens: boolean): void {
  if (common.socketDir === "" && listens) assertBindable(common.host, common.auth);
  assertDoorSettings(common.allowedHosts, common.allowedOrigins);
}

/**
 * Refuses settings without an internal secret if services run in several processes, unless the server is open and no
 * identities file is set. By this secret, each service recognizes calls of the other services.
 *
 * @throws SettingsError
 */
export function assertTrust(
  modules: readonly Hosted[],
  { auth, identitiesFile, internalSecret }: CommonSettings,
): void {
  const apart = SERVICES.some((name) => !modules.some(({ module }) => module.name === name));
  if ((auth === "open" && identitiesFile === "") || !apart || internalSecret !== "") return;
  const setting = auth === "required" ? "DEPUTE_AUTH is required" : "DEPUTE_IDENTITIES_FILE is set";
  throw new SettingsError(
    `${setting} and the services run in several processes: set DEPUTE_INTERNAL_SECRET to the same secret in all processes`,
  );
}

/**
 * Refuses replicas of a service that keeps copies of its rows in memory, and replicas that would not share their rows
 * or keys.
 *
 * @throws SettingsError
 */
export function assertReplicable(
  modules: readonly Hosted[],
  { replicated, postgresUrl, masterKeyFile }: CommonSettings,
): void {
  if (!replicated) return;
  const single = modules.map(({ module }) => module).filter(({ isReplicable }) => isReplicable !== true);
  if (single.length > 0) {
    throw new SettingsError(
      `DEPUTE_REPLICATED: only one process at a time may run ${single.map(({ name }) => name).join(", ")}; run the other services in separate processes`,
    );
  }
  if (postgresUrl === "" || masterKeyFile === "") {
    throw new SettingsError(
      "DEPUTE_REPLICATED: set DEPUTE_POSTGRES_URL and DEPUTE_MASTER_KEY_FILE, the same for all replicas",
    );
  }
}
