import { nativeEngine } from "@depute/dct/native";
import { afterEach, expect, it, vi } from "vitest";
import { openEngine } from "./engine.ts";

afterEach(() => vi.restoreAllMocks());

it("refuses an engine that accepts an invalid signature", async () => {
  vi.spyOn(nativeEngine, "verify").mockReturnValue(true);
  await expect(openEngine("native")).rejects.toThrow("sodium-native");
});

it("refuses an engine with a different hash", async () => {
  vi.spyOn(nativeEngine, "blake2b256").mockReturnValue(new Uint8Array(32));
  await expect(openEngine("native")).rejects.toThrow("BLAKE2b");
});
