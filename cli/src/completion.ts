import { readConfig } from "./client/config.ts";
import type { Command, Invocation, Parameter } from "./table/command.ts";
import { commandsOf, findCommand, firstWords, flagsOf } from "./table/commands.ts";

/** A word that shell completion offers, and its help text. */
export type Candidate = readonly [word: string, help: string];

/**
 * Returns the candidates that complete the last word of `words`. The list is empty if any text is allowed at that
 * position, such as the path of a file.
 *
 * @param contexts names of the contexts
 */
export function candidatesFor(words: readonly string[], contexts: readonly string[]): Candidate[] {
  const last = words.at(-1) ?? "";
  return unfiltered(words.slice(0, -1), last, contexts).filter(([word]) => word.startsWith(last));
}

function unfiltered(before: readonly string[], last: string, contexts: readonly string[]): Candidate[] {
  if (before.includes("--")) return [];
  const matched = findCommand(before);
  if (matched === undefined) return before.length > 1 ? [] : nextWords(before[0]);
  const { command, length } = matched;
  const flags = flagsOf(command);
  const previous = before.at(-1) ?? "";
  const flag = before.length > length ? flagNamed(flags, previous) : undefined;
  if (flag !== undefined && flag[1].type !== "bool") return valuesOf(flag[0], flag[1], contexts);
  if (last.startsWith("-")) {
    return Object.entries(flags).map(([name, { help }]) => [`--${name}`, help] as const);
  }
  return positional(command, before.slice(length), contexts);
}

function nextWords(first: string | undefined): Candidate[] {
  if (first === undefined) {
    return firstWords().map((word) => [word, findCommand([word])?.command.summary ?? `commands of ${word}`]);
  }
  return commandsOf(first).map(({ path, summary }) => [path.slice(first.length + 1), summary]);
}

function positional(command: Command, words: readonly string[], contexts: readonly string[]): Candidate[] {
  const flags = flagsOf(command);
  let index = 0;
  for (let at = 0; at < words.length; at++) {
    const flag = flagNamed(flags, words[at] ?? "");
    if (flag === undefined) index++;
    else if (flag[1].type !== "bool") at++;
  }
  const argument = command.args?.[index];
  if (argument === undefined) return [];
  const isContext = command.path.startsWith("context ") && command.path !== "context create";
  return valuesOf(isContext ? "context" : argument.name, argument, contexts);
}

function flagNamed(flags: Readonly<Record<string, Parameter>>, word: string) {
  return Object.entries(flags).find(([name, { short }]) => word === `--${name}` || word === `-${short}`);
}

function valuesOf(name: string, { values = [], help }: Parameter, contexts: readonly string[]): Candidate[] {
  return (name === "context" ? contexts : values).map((value) => [value, help]);
}

/** `depute complete -- WORDS`: prints one candidate per line, with a tab between the word and its help. */
export async function printCandidates({ rest }: Invocation): Promise<void> {
  let contexts: string[] = [];
  try {
    contexts = Object.keys(readConfig().contexts);
  } catch {
    // If the configuration cannot be read, there are no names of contexts. Completion must not print errors into the
    // user's shell. Every other command reports the error.
  }
  const lines = candidatesFor(rest, contexts).map(([word, help]) => `${word}\t${help}\n`);
  process.stdout.write(lines.join(""));
}

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_depute() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(depute complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _depute depute
`,
  zsh: `#compdef depute
_depute() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <(depute complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe depute found; else _files; fi
}
compdef _depute depute
`,
  fish: `function __depute_complete
    set -l words (commandline -opc)
    set -l found (depute complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c depute -f -a '(__depute_complete)'
`,
};

/**
 * `depute completion SHELL`: prints the completion script of a shell. The script calls `depute complete` to
 * get candidates.
 */
export async function printCompletion({ values }: Invocation): Promise<void> {
  process.stdout.write(SCRIPTS[String(values.SHELL)] ?? "");
}
