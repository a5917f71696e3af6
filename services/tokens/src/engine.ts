import { type CryptoEngine, portableEngine, selfTest } from "@depute/dct";

/**
 * Loads a cryptographic engine and tests it with known test vectors.
 *
 * @throws EngineError if a result is wrong; the service then does not start
 */
export async function openEngine(name: "native" | "portable"): Promise<CryptoEngine> {
  // Imports the native engine on demand, so that the portable engine runs without the native library.
  const engine = name === "native" ? (await import("@depute/dct/native")).nativeEngine : portableEngine;
  selfTest(engine);
  return engine;
}
