import { type CryptoEngine, isAdmissible, type Keypair, keypairFromSeed } from "@depute/dct";
import { type KeySource, type Logger, openSeed, SettingsError } from "@depute/service";

/** Where to find the root key. */
export interface KeyPlace {
  keys: KeySource;
  /** The configured path of the key file; empty for the platform's key source. */
  configured: string;
  log: Logger;
}

/**
 * Opens the platform's root key: the configured file, or the platform's key `root`, which the function creates if
 * absent. The key's text is the 32-byte seed in base64url.
 *
 * @throws SettingsError when a file is missing or malformed, or other users can read the created one
 */
export async function openRootKey(
  engine: CryptoEngine,
  { keys, configured, log }: KeyPlace,
): Promise<Keypair> {
  const warn = (message: string) => log.warn(message);
  const danger = "whoever reads it can mint tokens";
  const seed = await openSeed(keys, { name: "root.key", configured, danger, warn });
  const keypair = keypairFromSeed(engine, seed);
  seed.fill(0);
  return keypair;
}

/**
 * Checks the configured principals whose root tokens the service accepts.
 *
 * @throws SettingsError for a key that is not of prime order
 */
export function assertRoots(engine: CryptoEngine, configured: readonly string[]): void {
  const wrong = configured.findIndex((root) => !isAdmissible(engine, root));
  if (wrong < 0) return;
  throw new SettingsError(
    `DEPUTE_TRUSTED_ROOTS: number ${wrong + 1} is not an Ed25519 public key in base64url`,
  );
}
