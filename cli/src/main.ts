import { enableCompileCache } from "node:module";
import { CommandError, EXIT } from "./exit-codes.ts";
import { commandHelp, overview, resourceHelp } from "./help.ts";
import { nearest, parseInvocation } from "./parse.ts";
import { escapeControls } from "./print/safe-text.ts";
import { loadOwnWords, loadProgram } from "./programs.ts";
import { commandsOf, findCommand, firstWords } from "./table/commands.ts";

// Caches the compiled code of every module that is loaded from here on. Later runs of the command then need not compile
// these modules.
enableCompileCache();

/** Runs a command line. @returns its exit code */
async function main(words: readonly string[]): Promise<number> {
  const [first] = words;
  if (first === undefined || first === "--help" || first === "-h") return print(overview());
  if (first === "--version" || first === "-v") return main(["version"]);
  if (first === "help") return help(words.slice(1));
  const matched = findCommand(words);
  if (matched === undefined) return resource(words);
  const { command, length } = matched;
  const ownWords = words.slice(length);
  if (command.ownWords !== undefined)
    return (await (await loadOwnWords(command.ownWords))(ownWords)) ?? EXIT.ok;
  const invocation = parseInvocation(command, ownWords);
  if (invocation === undefined) return print(commandHelp(command));
  const { program: name } = command;
  const program = name === undefined ? (await import("./client/call.ts")).runCall : await loadProgram(name);
  return (await program(invocation)) ?? EXIT.ok;
}

function help(words: readonly string[]): number | Promise<number> {
  const found = findCommand(words);
  if (found?.command.ownWords !== undefined) return main([...words, "--help"]);
  if (found !== undefined) return print(commandHelp(found.command));
  return words.length === 0 ? print(overview()) : resource([words[0] ?? "", "--help"]);
}

function resource([first = "", verb]: readonly string[]): number {
  const commands = commandsOf(first);
  if (commands.length === 0) {
    const near = nearest(first, firstWords());
    const advice = near === undefined ? "see depute --help" : `did you mean ${near}? See depute --help`;
    throw new CommandError(`${JSON.stringify(first)} is not a command; ${advice}`);
  }
  if (verb === "--help" || verb === "-h") return print(resourceHelp(first));
  if (verb === undefined) {
    process.stderr.write(resourceHelp(first));
    return EXIT.usage;
  }
  const verbs = commands.map(({ path }) => path.slice(first.length + 1));
  throw new CommandError(`depute ${first} has no ${JSON.stringify(verb)}; it has ${verbs.join(", ")}`);
}

function print(text: string): number {
  process.stdout.write(text);
  return EXIT.ok;
}

/** If the process has not ended this many milliseconds after a failure, it ends itself. */
const LEFTOVERS_MS = 2_000;

// A reader such as `head` may close the pipe of the output early. The command then ends without an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT.ok);
  console.error(`depute: the output cannot be written: ${error.message}; check its disk or device`);
  process.exit(EXIT.failed);
});

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode ??= code;
  },
  async (error: unknown) => {
    // If a service fails in the middle of its start, it may leave timers and connections open, which keep the process
    // alive. This timer then ends the process. The timer itself does not keep the process alive.
    setTimeout(() => process.exit(), LEFTOVERS_MS).unref();
    if (error instanceof CommandError) {
      console.error(`depute: ${escapeControls(error.message)}`);
      process.exitCode = error.exitCode;
      return;
    }
    const { reportError } = await import("./errors.ts");
    process.exitCode = await reportError(error);
  },
);
