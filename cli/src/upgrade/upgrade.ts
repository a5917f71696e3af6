import {
  type CommonSettings,
  mergeSettings,
  platformStores,
  readSettings,
  type SettingsTable,
} from "@depute/service";
import { inspectStore } from "@depute/store/maintenance";
import { readConfigFile } from "../config/config-file.ts";
import { CommandError, EXIT } from "../exit-codes.ts";
import { MODULES, platformSettings } from "../modules.ts";
import { version } from "../version.ts";

const OWN_SETTINGS = {
  check: {
    type: "bool",
    default: false,
    help: "show what the next start of this version would change, and change nothing",
    group: "Upgrade",
  },
} as const satisfies SettingsTable;

/**
 * `depute upgrade --check`: shows what the next start of this version would change in the stores, even while another
 * version uses them. The command cannot change the stores, because only the start of the platform migrates them.
 *
 * @returns the exit code: 1 if this version cannot open a store
 */
export async function upgrade(args: readonly string[]): Promise<number> {
  const table = platformSettings();
  const { check, ...settings } = readSettings(
    mergeSettings(table, OWN_SETTINGS),
    args,
    { name: "depute upgrade", description: "Shows what the next start of this version would change." },
    await readConfigFile(args, table),
  );
  if (check !== true)
    throw new CommandError("run depute upgrade --check; the start of the platform migrates its stores");
  let failed = false;
  let pendingCount = 0;
  for (const { name, location, migrations } of platformStores(
    Object.values(MODULES),
    settings as unknown as CommonSettings,
  )) {
    try {
      const state = await inspectStore(location, migrations);
      if (state.kind === "absent") {
        console.log(`${name}: does not exist yet; the start creates it`);
        continue;
      }
      const { applied, pending } = state;
      pendingCount += pending.length;
      const at = applied.length === 0 ? "empty" : `at ${applied.join(", ")}`;
      console.log(
        pending.length === 0
          ? `${name}: ${at}, as this version`
          : `${name}: ${at}; the start applies ${pending.map((step) => `${step.place} (${step.name})`).join(", ")}`,
      );
    } catch (error) {
      failed = true;
      console.log(`${name}: cannot be opened by this version: ${(error as Error).message}`);
    }
  }
  const contracts = new Set(
    Object.values(MODULES).flatMap(({ descriptors }) => descriptors.map((each) => each.file.proto.package)),
  );
  console.log(`contracts of version ${version()}: ${[...contracts].sort().join(", ")}`);
  if (!failed)
    console.log(
      pendingCount === 0
        ? "no migration is pending"
        : `${pendingCount} migrations are pending; make a backup first`,
    );
  return failed ? EXIT.failed : EXIT.ok;
}
