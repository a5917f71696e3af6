import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings, readWithSources, SettingsError } from "@depute/service";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { platformSettings } from "../modules.ts";
import { checkConfig, unknownVariables } from "./check.ts";
import { readConfigFile } from "./config-file.ts";
import { parseConfig } from "./parse-config.ts";
import { configSchema } from "./print-schema.ts";
import { lineOf } from "./show.ts";

const TABLE = platformSettings();
const PROGRAM = { name: "test" };
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-config-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

let files = 0;
function fileOf(text: string, mode = 0o600): string {
  const path = join(folder, `${files++}.yaml`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const problemsOf = (text: string, isPrivate = true) =>
  parseConfig("depute.yaml", text, TABLE, isPrivate).problems;

describe("a file of settings", () => {
  test("has the values of each type", () => {
    const { values, problems } = parseConfig(
      "depute.yaml",
      [
        "# The platform of a test.",
        "host: 0.0.0.0",
        "gatewayPort: 0",
        "maxDeadline: 10m",
        "fastPath: false",
        "allowedHosts:",
        "  - a.example",
        '  - "*.b.example"',
        "publicUrl: https://depute.example/",
        "auth: required",
      ].join("\n"),
      TABLE,
      false,
    );
    expect(problems).toEqual([]);
    expect(Object.entries(values).map(([name, { value, place }]) => [name, value, place])).toEqual([
      ["host", "0.0.0.0", "depute.yaml:2"],
      ["gatewayPort", 0, "depute.yaml:3"],
      ["maxDeadline", 600_000, "depute.yaml:4"],
      ["fastPath", false, "depute.yaml:5"],
      ["allowedHosts", ["a.example", "*.b.example"], "depute.yaml:6"],
      ["publicUrl", "https://depute.example", "depute.yaml:9"],
      ["auth", "required", "depute.yaml:10"],
    ]);
  });

  test.each([
    ["an empty file", ""],
    ["comments alone", "# nothing yet\n"],
  ])("%s has no settings", (_, text) => expect(problemsOf(text)).toEqual([]));

  test.each([
    ["hosts: x", "depute.yaml:1: hosts: is not a setting; did you mean host?"],
    ["registry: 1", "depute.yaml:1: registry: is not a setting"],
    ["configFile: a.yaml", "depute.yaml:1: configFile: is not a setting"],
    ["\n\nmaxDeadline: 10", "depute.yaml:3: maxDeadline: write a duration like 250ms, 30s, 5m or 1h"],
    ["gatewayPort: 70000", "depute.yaml:1: gatewayPort: write a number from 0 to 65535"],
    ['gatewayPort: "80"', "depute.yaml:1: gatewayPort: write a whole number"],
    ["gatewayPort: 1.5", "depute.yaml:1: gatewayPort: write a whole number"],
    ["fastPath: yes", "depute.yaml:1: fastPath: write true or false"],
    ["auth: closed", "depute.yaml:1: auth: write one of: open, required"],
    ["host:", "depute.yaml:1: host: write a text"],
    ["allowedHosts: a,b", "depute.yaml:1: allowedHosts: write a list of texts without commas"],
    ['allowedHosts: ["a,b"]', "depute.yaml:1: allowedHosts: write a list of texts without commas"],
    ["publicUrl: depute.example", "depute.yaml:1: publicUrl: write an address like http://host:8080"],
    ["host: &a x\nsocketDir: *a", "depute.yaml:2: socketDir: write a text"],
    [
      "postgresUrlFile: /missing",
      "depute.yaml:1: postgresUrlFile: /missing cannot be read (ENOENT); name a readable file",
    ],
    ["credentialsFileFile: x", "depute.yaml:1: credentialsFileFile: is not a setting"],
    ["__proto__: x", "depute.yaml:1: __proto__: is not a setting"],
    ["- host", "depute.yaml:1: write one NAME: VALUE a line"],
  ])("%j is refused with file, line, setting and reason", (text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });

  test.each([
    ["a setting twice", "host: a\nhost: b"],
    ["two documents", "host: a\n---\nhost: b"],
    ["an open bracket", "allowedHosts: [a"],
    ["an unknown tag", "host: !secret a"],
  ])("%s is refused with its place", (_, text) => {
    expect(problemsOf(text)[0]).toMatch(/^depute\.yaml:[12]: /);
  });

  test("is refused with all its problems", () => {
    expect(problemsOf("hots: a\nport: 1\nfastPath: 1")).toHaveLength(3);
  });

  test("contains secrets only if other users cannot read it, and no message shows one", () => {
    const text = "internalSecret: hidden\npostgresUrl: hidden";
    expect(problemsOf(text, true)).toEqual([
      "depute.yaml:2: postgresUrl: write an address like http://host:8080",
    ]);
    for (const problem of problemsOf(text, false)) expect(problem).not.toContain("hidden");
    expect(problemsOf(text, false)[0]).toBe(
      "depute.yaml:1: internalSecret: other users can read this secret; chmod 600 the file, or name the secret's own file as internalSecretFile",
    );
  });

  test("names the file of a secret", () => {
    const secret = fileOf("hidden\n");
    const { values } = parseConfig("depute.yaml", `internalSecretFile: ${secret}`, TABLE, false);
    expect(values.internalSecret?.value).toBe("hidden");
    expect(problemsOf(`internalSecretFile: ${secret}\ninternalSecret: other`)).toEqual([
      "depute.yaml:2: internalSecret: internalSecret and internalSecretFile are both set; set one of them",
    ]);
  });

  test.each([
    ["a missing file", () => join(folder, "missing.yaml"), "cannot be read (ENOENT)"],
    ["a large file", () => fileOf(`# ${"x".repeat(1_000_000)}`), "exceeds 1000000 bytes"],
  ])("%s is refused", async (_, path, reason) => {
    await expect(readConfigFile(["--config-file", path()], TABLE)).rejects.toThrow(reason);
  });
});

describe("precedence", () => {
  const sourceAndValue = async (args: readonly string[]) => {
    const { settings, sourceOf } = readWithSources(TABLE, args, PROGRAM, await readConfigFile(args, TABLE));
    return [sourceOf("host"), settings.host];
  };

  test("flags have priority over variables, variables over the file, the file over defaults", async () => {
    expect(await sourceAndValue([])).toEqual(["default", "127.0.0.1"]);
    vi.stubEnv("DEPUTE_CONFIG_FILE", fileOf("host: in-file"));
    expect(await sourceAndValue([])).toEqual(["file", "in-file"]);
    vi.stubEnv("DEPUTE_HOST", "in-variable");
    expect(await sourceAndValue([])).toEqual(["variable", "in-variable"]);
    expect(await sourceAndValue(["--host", "in-flag"])).toEqual(["flag", "in-flag"]);
    expect(await sourceAndValue([`--config-file=${fileOf("host: other")}`, "--host=in-flag"])).toEqual([
      "flag",
      "in-flag",
    ]);
  });

  test("a variable that is empty in a Compose file keeps the file's value", async () => {
    vi.stubEnv("DEPUTE_MAX_DEADLINE", "");
    const args = ["--config-file", fileOf("maxDeadline: 10m")];
    expect(readSettings(TABLE, args, PROGRAM, await readConfigFile(args, TABLE)).maxDeadline).toBe(600_000);
  });

  test("an invalid file is refused before any setting is used", async () => {
    const args = ["--config-file", fileOf("hots: a")];
    await expect(readConfigFile(args, TABLE)).rejects.toThrow(SettingsError);
  });
});

describe("the schema", () => {
  const validate = new Ajv2020({ strict: true, allErrors: true }).compile(JSON.parse(configSchema()));

  test("docs/settings.schema.json has it; npm run settings-schema writes it", () => {
    const page = readFileSync(new URL("../../../docs/settings.schema.json", import.meta.url), "utf8");
    expect(JSON.parse(page)).toEqual(JSON.parse(configSchema()));
  });

  test.each([
    "host: 0.0.0.0",
    "gatewayPort: 0",
    "gatewayPort: 70000",
    "gatewayPort: -1",
    'gatewayPort: "80"',
    "gatewayPort: 1.5",
    "maxDeadline: 10m",
    "maxDeadline: 10",
    "maxDeadline: 10d",
    "fastPath: true",
    "fastPath: yes",
    "fastPath: 1",
    "allowedHosts: []",
    "allowedHosts: [a, b]",
    "allowedHosts: a",
    'allowedHosts: ["a,b"]',
    'allowedHosts: [" a"]',
    "allowedHosts: [1]",
    'publicUrl: ""',
    "publicUrl: http://a",
    "publicUrl: ftp://a",
    "registryUrl: [http://a, http://b]",
    "registryUrl: http://a",
    "registryUrl: []",
    'registryUrl: [""]',
    "auth: required",
    "auth: closed",
    "unknown: 1",
    "host:",
    "internalSecret: x",
  ])("and the reader agree on %j", (text) => {
    expect(validate(parse(text))).toBe(problemsOf(text).length === 0);
  });

  test("accepts the default of every setting", () => {
    const defaults = Object.entries(TABLE).map(([name, setting]) => [name, setting.default]);
    const { configFile: _, ...settings } = Object.fromEntries(defaults);
    validate(settings);
    expect(validate.errors).toBeNull();
  });
});

describe("depute config show", () => {
  const line = (name: string, value: unknown) =>
    lineOf(name, TABLE[name] as (typeof TABLE)[string], value, "flag");
  test.each([
    ["host", "::1", "host: ::1 # flag"],
    ["host", "a # b", 'host: "a # b" # flag'],
    ["maxDeadline", 600_000, "maxDeadline: 10m # flag"],
    ["maxDeadline", 1_500, "maxDeadline: 1500ms # flag"],
    ["maxConnectionAge", 0, "maxConnectionAge: 0s # flag"],
    ["allowedHosts", ["a", "*.b"], "allowedHosts: [ a, '*.b' ] # flag"],
    ["fastPath", false, "fastPath: false # flag"],
    ["internalSecret", "hidden", '# internalSecret: "********" # flag'],
    ["postgresUrl", "postgres://u:hidden@h/db", '# postgresUrl: "********" # flag'],
    ["otlpEndpoint", "http://u:hidden@h/x", "otlpEndpoint: http://u:********@h/x # flag"],
  ])("shows %s", (name, value, expected) => {
    const shown = line(name, value);
    expect(shown.replaceAll('"', "'")).toBe(expected.replaceAll('"', "'"));
    expect(problemsOf(shown)).toEqual([]);
  });
});

test("depute config check refuses an address at which depute start would listen without credentials", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => {});
  const lines = vi.spyOn(console, "log").mockImplementation(() => {});
  const check = (...flags: string[]) => checkConfig(["--host", "0.0.0.0", ...flags]);
  expect([await check(), await check("--auth", "required"), await check("--socket-dir", "/run")]).toEqual([
    1, 0, 0,
  ]);
  expect(errors.mock.calls).toEqual([
    [expect.stringContaining("DEPUTE_HOST is 0.0.0.0, which is not a loopback")],
  ]);
  errors.mockRestore();
  lines.mockRestore();
});

test("depute config check names variables without a setting", () => {
  const env = {
    DEPUTE_HOTS: "a",
    DEPUTE_HOST: "b",
    DEPUTE_CONFIG: "c",
    DEPUTE_POSTGRES_URL_FILE: "d",
    OTHER: "e",
  };
  expect(unknownVariables(TABLE, env)).toEqual([
    "DEPUTE_HOTS is ignored, because it is not a setting; did you mean DEPUTE_HOST?",
  ]);
});
