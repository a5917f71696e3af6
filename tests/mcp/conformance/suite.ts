import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { onDemand } from "../../../tools/on-demand.ts";

const MAIN = new URL(`file://${onDemand("mcp")}/@modelcontextprotocol/conformance/dist/index.js`);

export type SuiteRevision = "2025-06-18" | "2025-11-25" | "2026-07-28";

/** The suite's result for one server: the scenarios that passed, and the failed checks of each other scenario. */
export interface SuiteResult {
  readonly passed: readonly string[];
  readonly failed: ReadonlyMap<string, readonly string[]>;
}

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** Runs all server scenarios of a revision with the official conformance suite, in a separate process. */
export async function runSuite(url: string, revision: SuiteRevision): Promise<SuiteResult> {
  const folder = mkdtempSync(join(tmpdir(), "depute-mcp-conformance-"));
  try {
    const options = ["--url", url, "--suite", "all", "--spec-version", revision, "-o", folder];
    // The suite's exit code only says that a scenario failed; the files say which.
    await new Promise<void>((resolve) =>
      execFile(process.execPath, [MAIN.pathname, "server", ...options], { maxBuffer: 2 ** 26 }, () =>
        resolve(),
      ),
    );
    return resultIn(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function resultIn(folder: string): SuiteResult {
  const passed: string[] = [];
  const failed = new Map<string, readonly string[]>();
  for (const file of globSync(join(folder, "*/checks.json")).sort()) {
    const [, scenario = ""] = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(basename(dirname(file))) ?? [];
    const checks: Check[] = JSON.parse(readFileSync(file, "utf8"));
    const faults = checks.filter(({ status }) => status === "FAILURE");
    if (faults.length === 0) passed.push(scenario);
    else
      failed.set(
        scenario,
        faults.map(({ id, errorMessage }) => `${id}: ${errorMessage}`),
      );
  }
  return { passed, failed };
}
