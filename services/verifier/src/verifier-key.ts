import { type CryptoEngine, type Keypair, keypairFromSeed } from "@depute/dct";
import { type KeySource, openSeed } from "@depute/service";

/**
 * Opens the verifier's keypair: the configured file or, without one, the platform's key `verifier`. Creates the key
 * `verifier` if it does not exist. A configured file must exist.
 *
 * @throws SettingsError if the file is missing, unreadable, damaged, or readable by other users
 */
export async function loadVerifierKey(
  engine: CryptoEngine,
  keys: KeySource,
  configured: string,
): Promise<Keypair> {
  const danger = "its readers can attest in the platform's name";
  const seed = await openSeed(keys, { name: "verifier.key", configured, danger });
  return keypairFromSeed(engine, seed, { name: "verifier" });
}
