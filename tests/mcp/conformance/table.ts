import { introduce } from "../../gateway/platform.ts";
import { grantAll, startBehindDepute } from "./behind-depute.ts";
import { OWN_NEEDS_FIXTURE } from "./expected.ts";
import { holderRelay } from "./holder-relay.ts";
import { startOwnFixture } from "./own-fixture.ts";
import { runSuite, type SuiteResult, type SuiteRevision } from "./suite.ts";

/** This program prints the results of the conformance suite as a table: `npx node tests/mcp/conformance/table.ts`. */

const REVISIONS: readonly SuiteRevision[] = ["2025-06-18", "2025-11-25", "2026-07-28"];
const score = ({ passed, failed }: SuiteResult) => `${passed.length} of ${passed.length + failed.size}`;

const { fixture, platform, stop } = await startBehindDepute();
await introduce(platform, "worker", [["summarize"]]);
const token = await grantAll(platform);
const relay = await holderRelay(platform.mcp("fixture"), token);
const earlier = await holderRelay(platform.mcp("legacy"), token);
const own = await startOwnFixture();
const lines = [
  "| revision | the server alone | behind Depute | its earlier era behind Depute | /mcp, scenarios without fixtures | /mcp with fixtures |",
  "|---|---|---|---|---|---|",
];
for (const revision of REVISIONS) {
  const alone = await runSuite(fixture.url, revision);
  const behind = await runSuite(relay.url, revision);
  const behindEarlier = await runSuite(earlier.url, revision);
  const plain = await runSuite(`${platform.url}/mcp`, revision);
  const without = (scenario: string) => OWN_NEEDS_FIXTURE[scenario] === undefined;
  const failed = new Map([...plain.failed].filter(([scenario]) => without(scenario)));
  const plainScore = score({ passed: plain.passed.filter(without), failed });
  const cells = [alone, behind, behindEarlier].map(score);
  lines.push(`| ${[revision, ...cells, plainScore, score(await runSuite(own.url, revision))].join(" | ")} |`);
}
process.stdout.write(`${lines.join("\n")}\n`);
relay.stop();
earlier.stop();
own.stop();
await stop();
// Connections of the suite may stay open.
process.exit();
