import { type CryptoEngine, portableEngine, selfTest } from "@depute/dct";

/**
 * The engine of that name, after it has answered the known cases rightly.
 *
 * @throws EngineError when it did not; the service then does not start
 */
export async function openEngine(name: "native" | "portable"): Promise<CryptoEngine> {
  // Loaded on demand, so that a machine without the native library can still run the portable engine.
  const engine = name === "native" ? (await import("@depute/dct/native")).nativeEngine : portableEngine;
  selfTest(engine);
  return engine;
}
