import { afterEach, describe, expect, expectTypeOf, it, vi } from "vitest";
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

describe("readSettings", () => {
  it("gives defaults, typed", () => {
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

  it("takes a bare flag for true", () => {
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
  ])("refuses %s = %s %j, naming flag or variable and what would be right", (name, flag, text, hint) => {
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

  it("refuses one name with two meanings", () => {
    const other = defineSettings({ maxTasks: { type: "int", default: 11, help: "open tasks" } });
    expect(() => mergeSettings(table, other)).toThrow("maxTasks is declared twice");
  });
});
