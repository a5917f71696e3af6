import { execFileSync, type StdioOptions } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The parent of the commit that made the start cheaper: the baseline of all figures. */
const BEFORE = "32ba5a1c~1";

/** A checkout of the project in a folder of its own. */
export interface Tree {
  readonly folder: string;
  remove(): void;
}

const quiet: { readonly stdio: StdioOptions } = { stdio: ["ignore", "ignore", "inherit"] };

function emptyTree(commit: string): Tree {
  const folder = mkdtempSync(join(tmpdir(), "depute-start-"));
  execFileSync(
    "bash",
    ["-euo", "pipefail", "-c", 'git archive "$1" | tar x -C "$2"', "-", commit, folder],
    quiet,
  );
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Checks the baseline out, and installs its packages, which also generates its code. */
export function baselineTree(): Tree {
  const tree = emptyTree(BEFORE);
  execFileSync("npm", ["ci", "--prefer-offline", "--no-audit", "--no-fund"], { ...quiet, cwd: tree.folder });
  return tree;
}

/**
 * Returns the processor seconds of `npm ci` in a new checkout, with a warm cache of npm and with the project's own
 * scripts.
 */
export function installSeconds(which: "now" | "before"): number {
  const tree = emptyTree(which === "now" ? "HEAD" : BEFORE);
  try {
    const install = "npm ci --prefer-offline --no-audit --no-fund";
    // The first installation fills npm's cache, so that the second one measures no download.
    const script = `${install}; rm -rf node_modules .generated; times > before; ${install}; times > after`;
    execFileSync("bash", ["-euo", "pipefail", "-c", script], { ...quiet, cwd: tree.folder });
    const secondsOf = (file: string) =>
      Number(
        execFileSync("tail", ["-n", "1", file], { cwd: tree.folder, encoding: "utf8" })
          .trim()
          .split(/\s+/)
          .map((text) => /^(\d+)m([\d.]+)s$/.exec(text))
          .reduce((sum, found) => sum + Number(found?.[1]) * 60 + Number(found?.[2]), 0),
      );
    return secondsOf("after") - secondsOf("before");
  } finally {
    tree.remove();
  }
}

/** Builds the package, as it is shipped. @returns the file that its command runs */
export function builtMain(): string {
  execFileSync(process.execPath, ["tools/build.ts"], {
    ...quiet,
    env: { ...process.env, PATH: `${join(process.cwd(), "node_modules/.bin")}:${process.env.PATH}` },
  });
  return join(process.cwd(), "cli/dist/src/main.js");
}

/** Returns a new data folder. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "depute-start-data-"));
  mkdirSync(folder, { recursive: true });
  return folder;
}
