import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { grantAll, type StartedFixture, startBehindDepute } from "./behind-depute.ts";
import { DIFFERENCES, EARLIER_SERVER_DIFFERENCES, SCENARIOS } from "./expected.ts";
import { holderRelay } from "./holder-relay.ts";
import { runSuite, type SuiteRevision } from "./suite.ts";

let started: StartedFixture;
let relay: Awaited<ReturnType<typeof holderRelay>>;
let earlier: Awaited<ReturnType<typeof holderRelay>>;
beforeAll(async () => {
  started = await startBehindDepute();
  relay = await holderRelay(started.platform.mcp("fixture"), await grantAll(started.platform));
  earlier = await holderRelay(started.platform.mcp("legacy"), await grantAll(started.platform));
}, 60_000);
afterAll(async () => {
  relay.stop();
  earlier.stop();
  await started.stop();
});

describe.each<SuiteRevision>(["2025-06-18", "2025-11-25", "2026-07-28"])("conformance of %s", (revision) => {
  test("a server passes every scenario", async () => {
    const { passed, failed } = await runSuite(started.fixture.url, revision);
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

describe.each(["2025-11-25", "2026-07-28"] as const)("a client of %s, and an earlier server", (revision) => {
  test("the server behind Depute passes all but the expected differences", async () => {
    const { passed, failed } = await runSuite(earlier.url, revision);
    const expected = Object.keys(EARLIER_SERVER_DIFFERENCES[revision]).sort();
    expect([...failed.keys()].sort(), JSON.stringify(Object.fromEntries(failed), null, 2)).toEqual(expected);
    expect(passed.length + failed.size).toBe(SCENARIOS[revision]);
  }, 60_000);
});
