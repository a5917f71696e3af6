import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { startPlatform } from "../gateway/platform.ts";
import { type Block, blocksOf, pages } from "./pages.ts";

const WITH_COMMANDS = pages().filter((page) => blocksOf(page).some(({ notRun }) => notRun === undefined));
const DOCUMENTED = "127.0.0.1:8080";

/** The shell's first lines: a refused call fails its command, and each command has a time limit. */
const SHELL = `set -euo pipefail
curl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@"; }
npx() { "$@"; }
# Programs in the background end with the page; its configuration is its own.
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
DEPUTE_CONFIG="$(mktemp -d)/config.json"
export DEPUTE_CONFIG
`;

test.each(WITH_COMMANDS.map((page) => [page.path, page] as const))(
  "the commands of %s work, one after the other",
  async (_, page) => {
    const platform = await startPlatform(flagsOf(page.text));
    try {
      const commands = blocksOf(page).filter(({ notRun }) => notRun === undefined);
      const script = commands.map(ifInstalled).join("\n");
      const { code, output } = await bash(SHELL + script.replaceAll(DOCUMENTED, new URL(platform.url).host));
      expect(code, output).toBe(0);
      // biome-ignore lint/suspicious/noConsole: what is not tested has to be seen by the person who runs it
      for (const line of output.match(/^not run: .*$/gm) ?? []) console.warn(line);
    } finally {
      await platform.stop();
    }
  },
  300_000,
);

/**
 * Returns the commands of a block. If the program that the block needs is not installed, the shell prints a
 * note instead of running them.
 */
function ifInstalled({ commands, needs }: Block): string {
  if (needs === undefined) return commands;
  return `if command -v ${needs} > /dev/null; then\n${commands}else echo "not run: ${needs} is not installed"; fi`;
}

/** Returns the settings with which a page starts the platform: `<!-- runs with: --flag value -->`. */
function flagsOf(page: string): string[] {
  return /<!-- runs with: ([^>]+) -->/.exec(page)?.[1]?.trim().split(/\s+/) ?? [];
}

async function bash(script: string): Promise<{ code: number; output: string }> {
  const folder = mkdtempSync(join(tmpdir(), "depute-commands-"));
  const main = join(process.cwd(), "cli/src/main.ts");
  writeFileSync(join(folder, "depute"), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, {
    mode: 0o755,
  });
  // A page runs up to a hundred commands. With the cache the commands share compiled code, so a loaded machine
  // keeps the time limit.
  const NODE_COMPILE_CACHE = join(folder, "compiled");
  const env = { ...process.env, NODE_COMPILE_CACHE, PATH: `${folder}:${process.env.PATH}` };
  const shell = spawn("bash", ["-c", script], { stdio: ["ignore", "pipe", "pipe"], env });
  const [output, errors, [code]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, "close"),
  ]);
  rmSync(folder, { recursive: true });
  return { code, output: output + errors };
}
