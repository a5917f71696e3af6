import { type CryptoEngine, isAdmissible, type Keypair, keypairFromSeed } from "@depute/dct";
import { type KeySource, type Logger, openSeed, SettingsError } from "@depute/service";

/** Where the root key is stored. */
export interface KeyPlace {
  keys: KeySource;
  /** The path of the key file in the settings; empty if the platform's key source has the key. */
  configured: string;
  log: Logger;
}

/**
 * Opens the platform's root key: the configured file or, without one, the platform's key `root`. Creates the key `root`
 * if it does not exist. The key's text is the 32-byte seed in base64url.
 *
 * @throws SettingsError if the key is malformed, its file is missing or unusable, or other users can read its file in
 * the data folder
 */
export async function openRootKey(
  engine: CryptoEngine,
  { keys, configured, log }: KeyPlace,
): Promise<Keypair> {
  const warn = (message: string) => log.warn(message);
  const danger = "its readers can mint tokens";
  const seed = await openSeed(keys, { name: "root.key", configured, danger, warn });
  const keypair = keypairFromSeed(engine, seed);
  seed.fill(0);
  return keypair;
}

/**
 * Checks the configured principals whose root tokens the service accepts.
 *
 * @throws SettingsError if a key is not a point of prime order
 */
export function assertRoots(engine: CryptoEngine, configured: readonly string[]): void {
  const wrong = configured.findIndex((root) => !isAdmissible(engine, root));
  if (wrong < 0) return;
  throw new SettingsError(
    `DEPUTE_TRUSTED_ROOTS: number ${wrong + 1} is not an Ed25519 public key in base64url`,
  );
}
