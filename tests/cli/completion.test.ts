import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAIN } from "./depute.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-completion-"));
  writeFileSync(join(folder, "depute"), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`, {
    mode: 0o755,
  });
});
afterAll(() => rmSync(folder, { recursive: true }));

const isInstalled = (shell: string) => spawnSync(shell, ["--version"]).status === 0;

/** The command of each shell that loads the shell's completion script and prints the candidates for some words. */
const SHELLS: Readonly<Record<string, (words: readonly string[]) => string>> = {
  bash: (words) => `source <(depute completion bash)
COMP_WORDS=(depute ${words.map((word) => `'${word}'`).join(" ")})
COMP_CWORD=${words.length}
_depute
printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (words) => `compdef() { :; }
source <(depute completion zsh)
_describe() { printf '%s\\n' "\${(@)\${(P)2}%%:*}"; }
_files() { :; }
words=(depute ${words.map((word) => `'${word}'`).join(" ")})
CURRENT=$#words
_depute`,
  fish: (words) => `depute completion fish | source
complete -C 'depute ${words.join(" ")}' | string replace -r '\\t.*' ''`,
};

const CASES: [words: string[], candidates: string[]][] = [
  [["tas"], ["tasks"]],
  [["tasks", "des"], ["describe"]],
  [
    ["tasks", "list", "--status", "in"],
    ["in-review", "input-required"],
  ],
  [
    ["completion", ""],
    ["bash", "fish", "zsh"],
  ],
];

for (const shell of Object.keys(SHELLS)) {
  const runs = isInstalled(shell);
  // biome-ignore lint/suspicious/noConsole: a test that does not run has to be seen
  if (!runs) console.warn(`not run: ${shell} is not installed (apt-get install ${shell})`);
  if (!runs && process.env.CI === "true")
    throw new Error(`${shell} is not installed; install it for these tests`);
  test.runIf(runs).each(CASES)(`${shell} completes %j`, (words, candidates) => {
    const script = SHELLS[shell]?.(words) ?? "";
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, HOME: folder };
    const printed = execFileSync(shell, ["-c", script], { env, encoding: "utf8" });
    expect(
      printed
        .split("\n")
        .filter((line) => line !== "")
        .sort(),
    ).toEqual(candidates);
  });
}
