import { readFileSync, statSync } from "node:fs";
import { CommandError } from "../exit-codes.ts";

/** Maximum size in bytes of a document or a credential that a command reads. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads the text of a file, or of standard input for `-`.
 *
 * @throws CommandError if the text is larger than MAX_BYTES; the system's error if the file cannot be read
 */
export function readText(path: string): string {
  if (path !== "-" && statSync(path).size > MAX_BYTES) throw tooLong(path);
  const bytes = readFileSync(path === "-" ? 0 : path);
  if (bytes.length > MAX_BYTES) throw tooLong(path);
  return bytes.toString("utf8");
}

/**
 * Returns the text that an argument stands for: the content of the file for `@FILE`, standard input for `-`, otherwise
 * the argument's own text.
 */
export function textOf(argument: string): string {
  if (argument === "-") return readText("-");
  return argument.startsWith("@") ? readText(argument.slice(1)) : argument;
}

/** Reads a credential from a file. @throws CommandError if the file is empty, or larger than MAX_BYTES */
export function readCredential(path: string): string {
  const text = readText(path).trim();
  if (text === "") throw new CommandError(`${path} is empty; write the credential into it`);
  return text;
}

function tooLong(path: string): CommandError {
  return new CommandError(`${path} exceeds ${MAX_BYTES} bytes; pass a smaller document`);
}
