import { readSettings, SettingsError } from "@depute/service";
import { expect, it } from "vitest";
import { openEngine } from "./engine.ts";
import { assertSettings, tokensSettings } from "./settings.ts";

const read = (...args: string[]) => readSettings(tokensSettings, args, { name: "test" });

it("requires a holder's proof unless told otherwise", () => {
  expect(read().holderProof).toBe("required");
  expect(() => assertSettings(read())).not.toThrow();
});

it.each([
  ["a bound that one late look breaks", ["--revocation-max-staleness", "9s"]],
  ["no looks at all", ["--revocation-poll", "0s"]],
])("refuses %s", (_, args) => {
  expect(() => assertSettings(read(...args))).toThrow(SettingsError);
});

it.each(["native", "portable"] as const)("opens the %s engine, which has proved itself", async (name) => {
  const engine = await openEngine(name);
  expect(engine.name).toBe(name === "native" ? "sodium-native" : "noble");
});
