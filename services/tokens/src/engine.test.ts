import { nativeEngine } from "@depute/dct/native";
import { afterEach, expect, it, vi } from "vitest";
import { openEngine } from "./engine.ts";

afterEach(() => vi.restoreAllMocks());

it("does not open an engine that takes what is no signature", async () => {
  vi.spyOn(nativeEngine, "verify").mockReturnValue(true);
  await expect(openEngine("native")).rejects.toThrow("sodium-native");
});

it("does not open an engine that hashes otherwise", async () => {
  vi.spyOn(nativeEngine, "blake2b256").mockReturnValue(new Uint8Array(32));
  await expect(openEngine("native")).rejects.toThrow("BLAKE2b");
});
