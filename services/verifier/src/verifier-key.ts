import { type CryptoEngine, type Keypair, keypairFromSeed } from "@depute/dct";
import { openSeedFile } from "@depute/service";

/**
 * The verifier's own keypair: `verifier.key` in the data folder, made at the first start, or a configured file, which
 * has to be there.
 *
 * @throws SettingsError for a missing, unreadable or damaged file, or one that others may read
 */
export function loadVerifierKey(engine: CryptoEngine, dataDir: string, configured: string): Keypair {
  const danger = "whoever reads it can attest in the platform's name";
  const seed = openSeedFile({ dataDir, name: "verifier.key", configured, danger });
  return keypairFromSeed(engine, seed, { name: "verifier" });
}
