import { describe, expect, test } from "vitest";
import { SHIPPED_MAPS } from "../shipped-maps.ts";
import { ConfigError, readConfig } from "./read-config.ts";

const read = (upstreams: unknown) => readConfig({ upstreams }, SHIPPED_MAPS).upstreams;

/** Returns the faults that readConfig finds in a configuration. */
function faults(upstreams: unknown): readonly string[] {
  try {
    read(upstreams);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults;
    throw thrown;
  }
  return [];
}

describe("a configuration", () => {
  test("fills absent members with defaults", () => {
    expect(read({ files: { stdio: { command: "server" } } }).get("files")).toEqual({
      name: "files",
      address: { kind: "stdio", command: "server", args: [], env: {} },
      limits: {},
      map: { tools: new Map(), methods: new Map(), passed: new Set() },
      requireToken: true,
      login: false,
      timeoutMs: 60_000,
      maxAnswerBytes: 10_485_760,
      definitionTtlMs: 0,
      trustPromises: false,
      callsPerReservation: 16,
      revision: "auto",
      serverId: "files",
    });
  });

  test("adds its own rules to the shipped ones", () => {
    const map = { tools: { read_file: { namespace: "docs", action: "read", resource: "one", cost: 5 } } };
    const tools = read({ files: { maps: ["filesystem"], map } }).get("files")?.map.tools;
    expect(tools?.get("read_file")).toEqual({
      namespace: "docs",
      action: "read",
      resource: { kind: "fixed", value: "one" },
      cost: { most: 5 },
      checkArguments: true,
      limits: {},
    });
    expect(tools?.get("write_file")?.action).toBe("write");
  });

  test.each([...SHIPPED_MAPS.keys()])("can use the shipped map %s", (name) => {
    expect(read({ some: { maps: [name] } }).get("some")?.map.tools.size).toBeGreaterThan(0);
  });

  const rule = { namespace: "docs", action: "read" };
  test.each<[string, unknown, string]>([
    ["a value that is not an object", 7, "/upstreams: must be an object"],
    [
      "a malformed name",
      { "A/b": {} },
      "/upstreams/A/b: the name must be 1 to 64 characters of a-z, 0-9, - and _",
    ],
    ["an unknown member", { a: { tool: {} } }, "/upstreams/a/tool: is not a known member: remove it"],
    ["two addresses", { a: { stdio: {}, http: {} } }, "/upstreams/a: must have stdio or http, not both"],
    ["no command", { a: { stdio: {} } }, "/upstreams/a/stdio/command: must be a text that is not empty"],
    [
      "arguments that are not text",
      { a: { stdio: { command: "x", args: [1] } } },
      "/upstreams/a/stdio/args/0: must be a text that is not empty",
    ],
    [
      "a malformed address",
      { a: { http: { url: "file:///x" } } },
      "/upstreams/a/http/url: must be an http or https address",
    ],
    [
      "a password in the address",
      { a: { http: { url: "http://u:p@x/" } } },
      "/upstreams/a/http/url: must not contain a user, a password or a fragment",
    ],
    [
      "an unknown map",
      { a: { maps: ["nothing"] } },
      "/upstreams/a/maps/0: the map does not exist: use everything, fetch, filesystem, git, memory, sequential-thinking, time",
    ],
    ["a malformed time", { a: { timeoutMs: 0 } }, "/upstreams/a/timeoutMs: must be from 1 to 3600000"],
    [
      "a time to cache definitions that is too long",
      { a: { definitionTtlMs: 3_600_001 } },
      "/upstreams/a/definitionTtlMs: must be from 0 to 3600000",
    ],
    [
      "a limit of answers that is too small",
      { a: { maxAnswerBytes: 65_535 } },
      "/upstreams/a/maxAnswerBytes: must be from 65536 to 268435456",
    ],
    [
      "a string in place of the flag of trust",
      { a: { trustPromises: 1 } },
      "/upstreams/a/trustPromises: must be true or false",
    ],
    [
      "a string in place of a flag",
      { a: { requireToken: "no" } },
      "/upstreams/a/requireToken: must be true or false",
    ],
    [
      "an unknown revision",
      { a: { revision: "2024" } },
      "/upstreams/a/revision: must be one of auto, modern, legacy",
    ],
    [
      "a rule without an action",
      { a: { map: { tools: { t: { namespace: "docs" } } } } },
      "/upstreams/a/map/tools/t/action: must be a text that is not empty",
    ],
    [
      "a wildcard for a namespace",
      { a: { map: { tools: { t: { ...rule, namespace: "*" } } } } },
      "/upstreams/a/map/tools/t/namespace: must be 1 to 128 characters: lower-case letters, digits and _.:-",
    ],
    [
      "a resource with a wildcard",
      { a: { map: { tools: { t: { ...rule, resource: "a/*" } } } } },
      "/upstreams/a/map/tools/t/resource: must be a resource without wildcards, or only *",
    ],
    [
      "a malformed pointer",
      { a: { map: { tools: { t: { ...rule, resource: { argument: "path" } } } } } },
      "/upstreams/a/map/tools/t/resource: path is not a JSON pointer, such as /path",
    ],
    [
      "an unknown form",
      { a: { map: { tools: { t: { ...rule, resource: { argument: "/p", form: "glob" } } } } } },
      "/upstreams/a/map/tools/t/resource/form: must be one of text, path, real-path, uri",
    ],
    [
      "a negative cost",
      { a: { map: { tools: { t: { ...rule, cost: -1 } } } } },
      "/upstreams/a/map/tools/t/cost: must be a whole number from 0 to 2^53-1",
    ],
    [
      "a fractional cost",
      { a: { map: { tools: { t: { ...rule, cost: 0.5 } } } } },
      "/upstreams/a/map/tools/t/cost: must be a whole number from 0 to 2^53-1",
    ],
    [
      "a malformed digest",
      { a: { map: { tools: { t: { ...rule, definition: "x" } } } } },
      "/upstreams/a/map/tools/t/definition: must be a digest: 43 characters of base64url",
    ],
    [
      "a limit of zero",
      { a: { map: { tools: { t: { ...rule, limits: { callsPerMinute: 0 } } } } } },
      "/upstreams/a/map/tools/t/limits/callsPerMinute: must be at least 1",
    ],
    [
      "an unknown limit",
      { a: { limits: { callsPerSecond: 1 } } },
      "/upstreams/a/limits/callsPerSecond: is not a known member: remove it",
    ],
    [
      "unchecked arguments of a method",
      { a: { map: { methods: { "prompts/get": { ...rule, checkArguments: false } } } } },
      "/upstreams/a/map/methods/prompts/get/checkArguments: only a tool's rule can have this member: remove it",
    ],
    [
      "a rule for tools/call as a method",
      { a: { map: { methods: { "tools/call": rule } } } },
      "/upstreams/a/map/methods/tools/call: this method cannot have a rule: remove it",
    ],
    [
      "a definition without a tool",
      { a: { map: { methods: { "prompts/get": { ...rule, definition: "A".repeat(43) } } } } },
      "/upstreams/a/map/methods/prompts/get/definition: only a tool's rule can pin a definition: remove this member",
    ],
    [
      "tools/call as a method without a rule",
      { a: { map: { passed: ["tools/call"] } } },
      "/upstreams/a/map/passed: tools/call cannot be allowed without a check: remove it",
    ],
  ])("with %s is refused", (_, upstreams, fault) => {
    expect(faults(upstreams)).toContain(fault);
  });

  test.each([
    ["timeoutMs", 0, 1, 3_600_000],
    ["timeoutMs", 3_600_001, 1, 3_600_000],
    ["maxAnswerBytes", 65_535, 65_536, 268_435_456],
    ["maxAnswerBytes", 268_435_457, 65_536, 268_435_456],
    ["definitionTtlMs", 3_600_001, 0, 3_600_000],
    ["callsPerReservation", 0, 1, 256],
    ["callsPerReservation", 257, 1, 256],
  ])("with %s %j is refused", (member, value, min, max) => {
    expect(faults({ a: { [member]: value } })).toEqual([
      `/upstreams/a/${member}: must be from ${min} to ${max}`,
    ]);
  });

  test("is refused with all its faults at once", () => {
    expect(faults({ a: { http: { url: "x" }, timeoutMs: -1 }, b: { maps: "x" } })).toEqual([
      "/upstreams/a/http/url: must be an http or https address",
      "/upstreams/a/timeoutMs: must be a whole number from 0 to 2^53-1",
      "/upstreams/b/maps: must be a list of texts",
    ]);
  });
});
