import { EXIT_MEANINGS } from "./exit-codes.ts";
import { described, flagUsage, usageOf } from "./help.ts";
import type { Command, Flags } from "./table/command.ts";
import { COMMANDS, flagsOf } from "./table/commands.ts";
import { HELP_FLAG, REMOTE_FLAGS } from "./table/parameters.ts";

const HEAD = `# Command line

\`depute\` runs the platform, and operates it from a terminal. \`npm run cli-reference\` makes this page from the table of commands.

## First steps

The examples below use the names of these steps.

\`\`\`sh
cd "$(mktemp -d)"
depute context create local --server http://127.0.0.1:8080
depute worker --agent echo --capability echo -- cat &
for attempt in $(seq 30); do depute agents describe echo > /dev/null 2>&1 && break; sleep 1; done
depute delegate --agent echo --input '{"text":"hello"}' --watch
depute agents create --file '{"id":"clerk","version":"1.0.0"}'
ENDED_TASK=$(depute delegate --agent echo --input '"hello"' -o id)
depute tasks wait $ENDED_TASK
OPEN_TASK=$(depute delegate --agent clerk --input '{}' -o id)
TASK=$(depute delegate --agent clerk --input '{}' -o id)
REVIEW=$(depute reviews create --subject release-6 --title 'Release 6' --reviewer local -o id)
PRINCIPAL=$(depute keys new me.key)
depute tokens create --delegatee "$PRINCIPAL" --capability web:search:** --budget 1000 > token.txt
DELEGATION=$(depute tokens list -o id)
\`\`\`

## Output

- \`-o table\` cuts columns to the width of a terminal. In a pipe nothing is cut. \`-o wide\` has more columns.
- \`-o json\` and \`-o yaml\` print the messages of the contracts. With \`--watch\` JSON has one document a line.
- \`-o id\` prints the ids alone, for scripts.
- Texts of others may contain control characters: they are printed as \`\\uXXXX\`.
- Colors need a terminal. \`NO_COLOR\` turns them off.
- Errors and remarks go to standard error. An error is one sentence: what is wrong, then what to do.

## Contexts and credentials

A context is a platform with the files of the caller's credentials. \`depute context use\` selects one. The configuration is
\`depute/config.json\` in the user's folder for configuration (\`XDG_CONFIG_HOME\`, else \`~/.config\`; \`APPDATA\` on Windows), with
the mode 0600. A file that other users can access is refused.

A flag wins over its variable, and a variable over the context.

| flag | variable |
|---|---|
| | \`DEPUTE_CONFIG\`: the configuration file |
| \`--context\` | \`DEPUTE_CONTEXT\` |
| \`--server\` | \`DEPUTE_URL\`; \`http://127.0.0.1:8080\` when absent |
| \`--key-file\` | \`DEPUTE_KEY\` |
| \`--ca-file\` | \`DEPUTE_CA_FILE\` |
| \`--client-cert-file\` | \`DEPUTE_CLIENT_CERT_FILE\` |
| \`--client-key-file\` | \`DEPUTE_CLIENT_KEY_FILE\` |
| \`--token-file\` | \`DEPUTE_TOKEN_FILE\` |
| \`--secret-file\` | \`DEPUTE_SECRET_FILE\` |
`;

/** Returns the text of docs/cli.md. */
export function referencePage(): string {
  const visibleCommands = COMMANDS.filter(({ hidden = false }) => !hidden);
  return `${[
    HEAD,
    `## Exit codes\n\n${tableOf(
      ["code", "meaning"],
      EXIT_MEANINGS.map(([code, meaning]) => [String(code), meaning]),
    )}`,
    `## Flags of commands that call the platform\n\n${flagTable(REMOTE_FLAGS)}`,
    "## Commands",
    ...visibleCommands.map(section),
  ].join("\n\n")}\n`.replace(/\n{3,}/g, "\n\n");
}

function section(command: Command): string {
  const { path, summary, details, args = [], example = "", notRun, remote = false } = command;
  const shared = new Set([...Object.keys(HELP_FLAG), ...(remote ? Object.keys(REMOTE_FLAGS) : [])]);
  const ownFlags = Object.entries(flagsOf(command)).filter(([name]) => !shared.has(name));
  const rows = [
    ...args.map((each) => [`\`${each.name}\``, cell(described(each))]),
    ...ownFlags.map(([name, flag]) => [`\`${flagUsage(name, flag)}\``, cell(described(flag))]),
  ];
  return [
    `### depute ${path}`,
    `${summary}.${details === undefined ? "" : ` ${details}`}`,
    `\`${usageOf(command)}\``,
    ...(rows.length === 0 ? [] : [tableOf(["argument or flag", "meaning"], rows)]),
    `${notRun === undefined ? "" : `<!-- not run: ${notRun} -->\n`}\`\`\`sh\n${example}\n\`\`\``,
  ].join("\n\n");
}

function flagTable(flags: Flags): string {
  const rows = Object.entries(flags).map(([name, flag]) => [
    `\`${flagUsage(name, flag)}\``,
    cell(described(flag)),
  ]);
  return tableOf(["flag", "meaning"], rows);
}

function tableOf(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(headings), `|${"---|".repeat(headings.length)}`, ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

/** `depute reference`. */
export async function printReference(): Promise<void> {
  process.stdout.write(referencePage());
}
