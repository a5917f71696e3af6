import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

const CHART = new URL("../../deploy/helm/depute/", import.meta.url).pathname;
const SCHEMA = JSON.parse(readFileSync(new URL("../../docs/settings.schema.json", import.meta.url), "utf8"));
const VARIABLES = new Set(
  Object.keys(SCHEMA.properties).map((name) => `DEPUTE_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`),
);

test("the chart sets variables that are settings", () => {
  const files = [...globSync("templates/*.yaml", { cwd: CHART }), "values.yaml"];
  const text = files.map((file) => readFileSync(CHART + file, "utf8")).join("\n");
  const named = new Set(text.match(/\bDEPUTE_[A-Z0-9_]*[A-Z0-9]\b/g));
  named.delete("DEPUTE_");
  expect(named.size).toBeGreaterThan(10);
  expect([...named].filter((name) => !VARIABLES.has(name))).toEqual([]);
});

test("the chart has the version of the program", () => {
  const { appVersion } = parse(readFileSync(`${CHART}Chart.yaml`, "utf8"));
  const program = JSON.parse(readFileSync(new URL("../../cli/package.json", import.meta.url), "utf8"));
  expect(appVersion).toBe(program.version);
});

test("the chart installs every process", () => {
  const { services } = parse(readFileSync(`${CHART}values.yaml`, "utf8"));
  expect(Object.keys(services).sort()).toEqual(["gateway", "registry", "tasks", "tokens", "verifier"]);
});
