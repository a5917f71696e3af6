import { createHmac } from "node:crypto";
import { type CryptoEngine, isAdmissible, type Keypair, keypairFromSeed } from "@depute/dct";
import { type Logger, openSeedFile, SettingsError } from "@depute/service";

/** Where a key file is. */
export interface KeyPlace {
  dataDir: string;
  /** Empty for the file in the data folder. */
  configured: string;
  log: Logger;
}

/**
 * The platform's root key: from the configured file, or from `root.key` in the data folder, which is made when it is
 * not there. The file holds the 32-byte seed in base64url.
 *
 * @throws SettingsError when a file is missing, is no key, or the made one can be read by other users
 */
export function openRootKey(engine: CryptoEngine, where: KeyPlace): Keypair {
  const seed = open(where, "root.key", "whoever reads it can mint tokens");
  const keypair = keypairFromSeed(engine, seed);
  seed.fill(0);
  return keypair;
}

/**
 * The master key that kept keys are sealed with, as openRootKey finds its own: `master.key` in the data folder, or the
 * configured file.
 *
 * @throws SettingsError
 */
export function openMasterKey(where: KeyPlace): Uint8Array {
  return open(where, "master.key", "whoever reads it and the store has all kept keys");
}

/** What tells one secret key from another, and nothing of either. */
export function fingerprintOf(secret: Uint8Array): string {
  return createHmac("sha256", secret).update("depute key fingerprint").digest("hex").slice(0, 32);
}

/**
 * The principals whose tokens are accepted.
 *
 * @throws SettingsError for what is no key of prime order
 */
export function trustedRoots(
  engine: CryptoEngine,
  own: string,
  configured: readonly string[],
): ReadonlySet<string> {
  const wrong = configured.findIndex((root) => !isAdmissible(engine, root));
  if (wrong >= 0) {
    throw new SettingsError(
      `DEPUTE_TRUSTED_ROOTS: number ${wrong + 1} is not an Ed25519 public key in base64url`,
    );
  }
  return new Set([own, ...configured]);
}

function open({ dataDir, configured, log }: KeyPlace, name: string, danger: string): Uint8Array {
  return openSeedFile({ dataDir, name, configured, danger, warn: (message) => log.warn(message) });
}
