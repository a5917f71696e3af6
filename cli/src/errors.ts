import { CommandError, EXIT } from "./exit-codes.ts";
import { escapeControls } from "./print/safe-text.ts";

/**
 * Prints an error. For a request for help, prints the help. If the user can correct the error, prints one sentence with
 * the remedy. For any other error, which is a bug of the program, prints the stack.
 *
 * @returns the exit code
 */
export async function reportError(error: unknown): Promise<number> {
  if (error instanceof Error && error.name === "HelpRequested" && "text" in error) {
    console.log(error.text);
    return EXIT.ok;
  }
  const commandError = error instanceof CommandError ? error : await knownError(error);
  if (commandError === undefined) {
    console.error(error);
    return EXIT.failed;
  }
  console.error(`depute: ${escapeControls(commandError.message)}`);
  return commandError.exitCode;
}

async function knownError(error: unknown): Promise<CommandError | undefined> {
  if (!(error instanceof Error)) return undefined;
  // Compares names instead of classes. If a command fails early, the packages with these classes are not loaded.
  if (error.name === "SettingsError" || error.name === "DeputeError") {
    return new CommandError(error.message, EXIT.failed);
  }
  if (error.name === "ConnectError") return (await import("./client/refusal.ts")).refusalOf(error);
  const { code, address, port, path } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === "EADDRINUSE") {
    return new CommandError(
      `another program listens on ${address}:${port}; choose another port`,
      EXIT.failed,
    );
  }
  if (code === "ENOENT" && path !== undefined) {
    return new CommandError(`${path} does not exist; check the path`);
  }
  if (code === "EACCES" && path !== undefined) {
    return new CommandError(`${path} is not accessible; check its permissions`);
  }
  return undefined;
}
