import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import {
  defineSettings,
  envName,
  flagName,
  type HelpRequested,
  mergeSettings,
  readSettings,
  type Settings,
  SettingsError,
} from "./settings.ts";

const table = defineSettings({
  dataDir: { type: "string", default: "./data", help: "folder of the files", group: "Where" },
  logLevel: { type: "string", choices: ["info", "debug"], default: "info", help: "what is logged" },
  maxTasks: { type: "int", default: 10, min: 1, max: 100, help: "open tasks" },
  leaseTimeout: { type: "duration", default: "30s", help: "time of a lease" },
  strict: { type: "bool", default: false, help: "refuse more" },
  trustedKeys: { type: "list", default: [], help: "keys" },
  peerUrl: { type: "url", default: "", help: "the peer" },
});

const read = (...args: string[]) => readSettings(table, args, { name: "test" });

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("names", () => {
  it("of variables and flags follow from the setting's", () => {
    expect(envName("leaseTimeout")).toBe("DEPUTE_LEASE_TIMEOUT");
    expect(flagName("leaseTimeout")).toBe("--lease-timeout");
  });
});

describe("an unknown flag", () => {
  it.each([
    ["--tasks", "unknown option '--tasks'; write --max-tasks"],
    ["--timeout=5s", "unknown option '--timeout'; write --lease-timeout"],
    ["--stict", "unknown option '--stict'\n(Did you mean --strict?)"],
    ["--other", "unknown option '--other'"],
  ])("%s is refused with the most similar flag", (flag, message) => {
    expect(() => read(flag)).toThrow(new SettingsError(message));
  });
});

describe("a secret in a file", () => {
  const secrets = defineSettings({
    sharedSecret: { type: "string", default: "", help: "the secret", isSecret: true },
    databaseUrl: { type: "url", default: "", help: "the database", isSecret: true },
    plain: { type: "string", default: "none", help: "no secret" },
  });
  const readSecrets = (...args: string[]) => readSettings(secrets, args, { name: "test" });
  let folder: string;
  const save = (text: string): string => {
    const path = join(folder, "secret");
    writeFileSync(path, text);
    return path;
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "depute-settings-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("is read without the newline at its end", () => {
    vi.stubEnv("DEPUTE_SHARED_SECRET_FILE", save("hidden\n"));
    expect(readSecrets()).toEqual({ sharedSecret: "hidden", databaseUrl: "", plain: "none" });
  });

  it("loses to a flag", () => {
    vi.stubEnv("DEPUTE_SHARED_SECRET_FILE", save("hidden"));
    expect(readSecrets("--shared-secret", "given").sharedSecret).toBe("given");
  });

  it("is not read for a setting that is not secret", () => {
    vi.stubEnv("DEPUTE_PLAIN_FILE", save("hidden"));
    expect(readSecrets().plain).toBe("none");
  });

  it.each<[string, () => Record<string, string>, RegExp]>([
    [
      "beside the variable",
      () => ({ DEPUTE_SHARED_SECRET: "x", DEPUTE_SHARED_SECRET_FILE: save("hidden") }),
      /both set; set one/,
    ],
    [
      "that is absent",
      () => ({ DEPUTE_SHARED_SECRET_FILE: join(folder, "absent") }),
      /ENOENT.*readable file/,
    ],
    ["that is empty", () => ({ DEPUTE_SHARED_SECRET_FILE: save("\n") }), /is empty/],
    ["without a valid value", () => ({ DEPUTE_DATABASE_URL_FILE: save("pass word") }), /no valid value/],
  ])("is refused %s, and the message does not quote it", (_, env, message) => {
    for (const [name, value] of Object.entries(env())) vi.stubEnv(name, value);
    expect(readSecrets).toThrow(message);
    expect(readSecrets).not.toThrow(/hidden|pass word/);
  });
});

describe("readSettings", () => {
  it("returns typed defaults", () => {
    const settings = read();
    expect(settings).toEqual({
      dataDir: "./data",
      logLevel: "info",
      maxTasks: 10,
      leaseTimeout: 30_000,
      strict: false,
      trustedKeys: [],
      peerUrl: "",
    });
    expectTypeOf(settings).toEqualTypeOf<Settings<typeof table>>();
    expectTypeOf(settings.logLevel).toEqualTypeOf<"info" | "debug">();
    expectTypeOf(settings.leaseTimeout).toEqualTypeOf<number>();
    expectTypeOf(settings.trustedKeys).toEqualTypeOf<readonly string[]>();
  });

  it.each<[string, string, string, unknown]>([
    ["dataDir", "--data-dir", "/var/x", "/var/x"],
    ["dataDir", "--data-dir", "", ""],
    ["logLevel", "--log-level", "debug", "debug"],
    ["maxTasks", "--max-tasks", "100", 100],
    ["maxTasks", "--max-tasks", "", 10],
    ["leaseTimeout", "--lease-timeout", "250ms", 250],
    ["leaseTimeout", "--lease-timeout", "5m", 300_000],
    ["leaseTimeout", "--lease-timeout", "7776000000ms", 7_776_000_000],
    ["leaseTimeout", "--lease-timeout", "1h", 3_600_000],
    ["strict", "--strict", "true", true],
    ["strict", "--strict", "off", false],
    ["trustedKeys", "--trusted-keys", "a, b,,c", ["a", "b", "c"]],
    ["trustedKeys", "--trusted-keys", "", []],
    ["peerUrl", "--peer-url", "http://h:1/", "http://h:1"],
  ])("reads %s from %s %j and from its variable", (name, flag, text, value) => {
    expect(read(flag, text)).toHaveProperty(name, value);
    vi.stubEnv(envName(name), text);
    expect(read()).toHaveProperty(name, value);
  });

  it("reads a flag without a value as true", () => {
    expect(read("--strict").strict).toBe(true);
  });

  it("prefers the flag to the variable", () => {
    vi.stubEnv("DEPUTE_MAX_TASKS", "20");
    expect(read().maxTasks).toBe(20);
    expect(read("--max-tasks", "30").maxTasks).toBe(30);
  });

  it.each([
    ["maxTasks", "--max-tasks", "0", "from 1 to 100"],
    ["maxTasks", "--max-tasks", "101", "from 1 to 100"],
    ["maxTasks", "--max-tasks", "1e2", "whole number"],
    ["maxTasks", "--max-tasks", "ten", "whole number"],
    ["leaseTimeout", "--lease-timeout", "30", "like 250ms"],
    ["leaseTimeout", "--lease-timeout", "-1s", "like 250ms"],
    ["leaseTimeout", "--lease-timeout", "1d", "like 250ms"],
    ["strict", "--strict", "yes", "true or false"],
    ["strict", "--strict", "constructor", "true or false"],
    ["logLevel", "--log-level", "loud", "one of: info, debug"],
    ["peerUrl", "--peer-url", "peer", "http://"],
    ["peerUrl", "--peer-url", "ftp://peer", "http://"],
  ])("refuses %s = %s %j, and names the flag or variable and valid values", (name, flag, text, hint) => {
    const refusal = (run: () => unknown) => {
      try {
        run();
      } catch (error) {
        return error as Error;
      }
      return undefined;
    };
    const byFlag = refusal(() => read(`${flag}=${text}`));
    expect(byFlag).toBeInstanceOf(SettingsError);
    expect(byFlag?.message).toContain(flag);
    expect(byFlag?.message).toContain(hint);
    vi.stubEnv(envName(name), text);
    const byVariable = refusal(() => read());
    expect(byVariable).toBeInstanceOf(SettingsError);
    expect(byVariable?.message).toContain(envName(name));
    expect(byVariable?.message).toContain(hint);
  });

  it.each([["--no-such-flag"], ["stray"]])("refuses %s", (arg) => {
    expect(() => read(arg)).toThrow(SettingsError);
  });

  it("answers --help with every setting, its variable, its default and its group", () => {
    let text = "";
    try {
      read("--help");
    } catch (error) {
      text = (error as HelpRequested).text;
    }
    for (const name of Object.keys(table)) {
      expect(text).toContain(envName(name));
      expect(text).toContain(flagName(name));
    }
    expect(text).toContain("Where");
    expect(text).toContain("30s");
    expect(text).toContain('"info", "debug"');
  });
});

describe("mergeSettings", () => {
  it("joins tables", () => {
    const other = defineSettings({ port: { type: "int", default: 1, help: "p" } });
    expect(Object.keys(mergeSettings(table, other, table))).toEqual([...Object.keys(table), "port"]);
  });

  it("refuses one name with two definitions", () => {
    const other = defineSettings({ maxTasks: { type: "int", default: 11, help: "open tasks" } });
    expect(() => mergeSettings(table, other)).toThrow("maxTasks is declared twice");
  });
});
