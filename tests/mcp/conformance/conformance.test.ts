import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { grant } from "../holder.ts";
import { type McpPlatform, startPlatform } from "../platform.ts";
import { DIFFERENCES, SCENARIOS } from "./expected.ts";
import { startFixture } from "./fixture-server.ts";
import { TOOL_NAMES } from "./fixture-tools.ts";
import { holderRelay } from "./holder-relay.ts";
import { runSuite, type SuiteRevision } from "./suite.ts";

const execute = (resource: string) => ({ namespace: "compute", action: "execute", resource });
const generate = (argument: string) => ({ namespace: "llm", action: "generate", resource: { argument } });
const read = { namespace: "docs", action: "read", resource: { argument: "/uri", form: "uri" } };
const MAP = {
  tools: Object.fromEntries(TOOL_NAMES.map((name) => [name, execute(`fixture/${name}`)])),
  methods: {
    "resources/read": read,
    "resources/subscribe": read,
    "resources/unsubscribe": read,
    "prompts/get": generate("/name"),
    "completion/complete": generate("/ref/name"),
  },
  passed: ["sampling/createMessage", "elicitation/create", "roots/list", "logging/setLevel"],
};

let fixture: Awaited<ReturnType<typeof startFixture>>;
let platform: McpPlatform;
let relay: Awaited<ReturnType<typeof holderRelay>>;
beforeAll(async () => {
  fixture = await startFixture();
  platform = await startPlatform({ fixture: { http: { url: fixture.url }, map: MAP } });
  const holder = await grant(platform, [
    ["compute", "execute", "fixture/**"],
    ["docs", "read", "test/**"],
    ["llm", "generate", "**"],
  ]);
  relay = await holderRelay(platform.mcp("fixture"), holder);
}, 60_000);
afterAll(async () => {
  relay.stop();
  await platform.stop();
  fixture.stop();
});

describe.each<SuiteRevision>(["2025-06-18", "2025-11-25", "2026-07-28"])("conformance of %s", (revision) => {
  test("a server passes every scenario", async () => {
    const { passed, failed } = await runSuite(fixture.url, revision);
    expect(Object.fromEntries(failed)).toEqual({});
    expect(passed).toHaveLength(SCENARIOS[revision]);
  }, 60_000);

  test("the same server behind Depute passes all but the expected differences", async () => {
    const { passed, failed } = await runSuite(relay.url, revision);
    const expected = Object.keys(DIFFERENCES[revision]).sort();
    expect([...failed.keys()].sort(), JSON.stringify(Object.fromEntries(failed), null, 2)).toEqual(expected);
    expect(passed.length + failed.size).toBe(SCENARIOS[revision]);
  }, 60_000);
});
