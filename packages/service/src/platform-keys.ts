import { join } from "node:path";
import { type Clock, decodeBase64Url, type Timers } from "@depute/core";
import { type Migration, openStore, row, StoreKeyError, type StoreLocation, text } from "@depute/store";
import type { CommonSettings } from "./common-settings.ts";
import { type KeyFile, newSeed, openKeyFile, openSeedFile, readKeyFile, SEED_BYTES } from "./key-file.ts";
import type { Logger } from "./log.ts";
import type { SealedTable } from "./reseal.ts";
import { fingerprintOf, SealedSecrets } from "./sealed-secrets.ts";
import { SettingsError } from "./settings.ts";
import { explainStore, storeAt } from "./store-place.ts";

/** A key of the platform: the name of its file, an optional configured file, and what other users could do with it. */
export type KeyName = Omit<KeyFile, "dataDir">;

/** The keys of the platform, in files or in the database. */
export interface KeySource {
  /**
   * Returns the text of a key. Creates the key if it does not exist. A configured file takes precedence, and is never
   * created.
   *
   * @param make returns the text of a new key
   * @throws SettingsError when the key cannot be read, opened or stored, or when the file and the database contain
   * different keys; DeputeError DEPENDENCY_UNAVAILABLE when the database does not answer
   */
  open(key: KeyName, make: () => string): Promise<string>;
  /**
   * Returns the 32 bytes of the master key. The master key is always a file.
   *
   * @throws SettingsError
   */
  openMaster(): Uint8Array;
}

const MASTER: KeyName = { name: "master.key", danger: "its readers can open all sealed keys" };

/** The keys as files of a data folder. */
export function keyFiles(dataDir: string, masterFile = "", warn?: (message: string) => void): KeySource {
  return {
    open: async (key, make) => openKeyFile({ dataDir, ...key }, make),
    openMaster: () =>
      openSeedFile({ dataDir, ...MASTER, configured: masterFile, ...(warn !== undefined && { warn }) }),
  };
}

/**
 * Opens a key of 32 bytes in base64url.
 *
 * @throws the errors of {@link KeySource.open}; SettingsError for a key that is not 32 bytes in base64url
 */
export async function openSeed(keys: KeySource, key: KeyName): Promise<Uint8Array> {
  const seed = decodeBase64Url((await keys.open(key, newSeed)).trim());
  if (seed?.length === SEED_BYTES) return seed;
  throw new SettingsError(`the key ${key.configured || key.name} is not ${SEED_BYTES} bytes in base64url`);
}

/** The migrations of the table of sealed keys, in the schema `PREFIX_platform`. */
export const KEY_MIGRATIONS: readonly Migration[] = [
  {
    id: 1,
    name: "platform keys",
    sql: `CREATE TABLE platform_keys (
  name TEXT PRIMARY KEY,
  sealed TEXT NOT NULL, -- nonce, ciphertext and tag of the key's text in base64url, sealed by the master key
  create_ms BIGINT NOT NULL
)`,
  },
];

/** Describes the table of sealed keys for {@link resealStore}. */
export const PLATFORM_KEYS: SealedTable = {
  table: "platform_keys",
  key: "name",
  columns: [],
  contextOf: ({ name = "" }) => contextOf(name),
};

function contextOf(name: string) {
  return { platformKey: name };
}

const SEALED = row({ sealed: text });

/** The database in which keys are rows, and the master key that seals these rows. */
export interface KeyRowsOptions {
  readonly place: StoreLocation;
  readonly dataDir: string;
  readonly masterFile: string;
  /** Names of the keys, without `.key`, whose row the operator wants to replace by the key in the file. */
  readonly replaced: readonly string[];
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * The keys as rows of the database, sealed by the master key. Every replica then has the same keys, and needs only the
 * master key. The first start copies the key of an existing key file into the database. The store is open only during a
 * call of `open`, so that several processes can start at the same time.
 */
export class KeyRows implements KeySource {
  readonly #options: KeyRowsOptions;
  readonly #files: KeySource;

  constructor(options: KeyRowsOptions) {
    this.#options = options;
    const warn = (message: string) => options.log.warn(message);
    this.#files = keyFiles(options.dataDir, options.masterFile, warn);
  }

  openMaster(): Uint8Array {
    return this.#files.openMaster();
  }

  async open(key: KeyName, make: () => string): Promise<string> {
    const { dataDir } = this.#options;
    if (key.configured !== undefined && key.configured !== "") return this.#files.open(key, make);
    const master = this.openMaster();
    const secrets = new SealedSecrets(master);
    try {
      return await this.#openRow(key, readKeyFile({ dataDir, ...key }), make, secrets, fingerprintOf(master));
    } finally {
      secrets.close();
    }
  }

  async #openRow(
    key: KeyName,
    fileText: string | undefined,
    make: () => string,
    secrets: SealedSecrets,
    master: string,
  ): Promise<string> {
    const { place, clock, timers, log, replaced, dataDir } = this.#options;
    const name = key.name.replace(/\.key$/, "");
    const isReplaced = fileText !== undefined && replaced.includes(name);
    const context = contextOf(name);
    const store = await openStore({
      ...place,
      clock,
      timers,
      keys: { fingerprints: { master }, replaced: [] },
      migrations: KEY_MIGRATIONS,
      onError: (err, message) => log.error({ err }, message),
    }).catch((error) => Promise.reject(explained(error)));
    try {
      const { sealed, isNew } = await store.write(async (tx) => {
        const sealedRow = await tx.get(SEALED, "SELECT sealed FROM platform_keys WHERE name = ?", [name]);
        if (sealedRow !== undefined && !isReplaced) return { sealed: sealedRow.sealed, isNew: false };
        const sealedSeed = secrets.seal(new TextEncoder().encode(fileText ?? make().trim()), context);
        await tx.run(
          `INSERT INTO platform_keys (name, sealed, create_ms) VALUES (?, ?, ?)
           ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, create_ms = excluded.create_ms`,
          [name, sealedSeed, clock.now()],
        );
        return { sealed: sealedSeed, isNew: true };
      });
      if (isNew && fileText !== undefined)
        log.info({ key: name }, "the key is in the database; its file is not needed");
      const opened = secrets.open(sealed, context);
      if (opened === undefined)
        throw new SettingsError(
          `the ${name} key in the database does not open with this master key; set DEPUTE_MASTER_KEY_FILE to the key that sealed it`,
        );
      const keyText = new TextDecoder().decode(opened);
      if (fileText === undefined || fileText === keyText) return keyText;
      throw new SettingsError(
        `${join(dataDir, key.name)} differs from the ${name} key in the database: remove the file; or, to replace the ` +
          `key permanently, start once with DEPUTE_REPLACE_KEYS=${name}`,
      );
    } finally {
      await store.close();
    }
  }
}

function explained(error: unknown): unknown {
  if (!(error instanceof StoreKeyError)) return explainStore(error, "platform", { postgresUrl: "set" });
  return new SettingsError(
    `the keys in the database are sealed with another master key: ${error.message}; set DEPUTE_MASTER_KEY_FILE to that key`,
    { cause: error },
  );
}

/**
 * Returns the keys of a process. With Postgres and a configured master key, the keys are rows of the database,
 * which all replicas share. Otherwise the keys are files.
 */
export function platformKeys(
  common: Pick<
    CommonSettings,
    "dataDir" | "postgresUrl" | "postgresSchemaPrefix" | "masterKeyFile" | "replaceKeys"
  >,
  { clock, timers, log }: Pick<KeyRowsOptions, "clock" | "timers" | "log">,
): KeySource {
  const { dataDir, postgresUrl, masterKeyFile: masterFile, replaceKeys: replaced } = common;
  if (postgresUrl === "" || masterFile === "")
    return keyFiles(dataDir, masterFile, (message) => log.warn(message));
  return new KeyRows({
    ...{ place: storeAt(common, "platform"), dataDir, masterFile, replaced },
    ...{ clock, timers, log },
  });
}
