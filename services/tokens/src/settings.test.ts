import { readSettings, SettingsError } from "@depute/service";
import { expect, it } from "vitest";
import { openEngine } from "./engine.ts";
import { assertSettings, tokensSettings } from "./settings.ts";

const read = (...args: string[]) => readSettings(tokensSettings, args, { name: "test" });

it("requires a holder's proof by default", () => {
  expect(read().holderProof).toBe("required");
  expect(() => assertSettings(read())).not.toThrow();
});

it.each([
  ["a staleness bound below one late poll", ["--revocation-max-staleness", "9s"]],
  ["a poll interval of zero", ["--revocation-poll", "0s"]],
])("refuses %s", (_, args) => {
  expect(() => assertSettings(read(...args))).toThrow(SettingsError);
});

it.each(["native", "portable"] as const)("opens the %s engine after its known answers", async (name) => {
  const engine = await openEngine(name);
  expect(engine.name).toBe(name === "native" ? "sodium-native" : "noble");
});
