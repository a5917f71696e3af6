import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce } from "../../gateway/platform.ts";
import { type McpPlatform, startPlatform } from "../platform.ts";
import { OWN_NEEDS_FIXTURE, SCENARIOS } from "./expected.ts";
import { startOwnFixture } from "./own-fixture.ts";
import { runSuite, type SuiteResult, type SuiteRevision } from "./suite.ts";

let platform: McpPlatform;
let fixture: Awaited<ReturnType<typeof startOwnFixture>>;
beforeAll(async () => {
  platform = await startPlatform({});
  await introduce(platform, "worker", [["summarize"]]);
  fixture = await startOwnFixture();
}, 60_000);
afterAll(async () => {
  fixture.stop();
  await platform.stop();
});

/** Compares the scenarios that failed with the expected ones. A listed scenario that passes fails the test, too. */
function expectFailures(
  { passed, failed }: SuiteResult,
  revision: SuiteRevision,
  expected: readonly string[],
) {
  const details = JSON.stringify(Object.fromEntries(failed), null, 2);
  expect([...failed.keys()].sort(), details).toEqual([...expected].sort());
  expect(passed.length + failed.size).toBe(SCENARIOS[revision]);
}

describe.each<SuiteRevision>(["2025-06-18", "2025-11-25", "2026-07-28"])("conformance of %s", (revision) => {
  test("/mcp passes every scenario that needs no fixture", async () => {
    const result = await runSuite(`${platform.url}/mcp`, revision);
    const scenarios = [...result.passed, ...result.failed.keys()];
    const needing = scenarios.filter((scenario) => OWN_NEEDS_FIXTURE[scenario] !== undefined);
    expectFailures(result, revision, needing);
  }, 60_000);

  test("the program of /mcp passes every scenario with the fixtures", async () => {
    const result = await runSuite(fixture.url, revision);
    expectFailures(result, revision, []);
  }, 60_000);
});
