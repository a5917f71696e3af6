import { readFileSync } from "node:fs";
import { CommandError } from "../exit-codes.ts";
import {
  identityOf,
  type Opener,
  passphraseOf,
  recipientOf,
  SealedKeysError,
  type Sealer,
} from "./sealed-keys.ts";

/** Maximum length, in characters, of a file that contains a passphrase or a key. */
const MAX_CHARS = 16_384;

/**
 * Reads the passphrase, or the recipient's public key, that seals the keys of a backup.
 *
 * @returns undefined if both names of files are empty
 * @throws CommandError if the file cannot be used, or if both files are named
 */
export function readSealer(passphraseFile: string, recipientFile: string): Sealer | undefined {
  if (passphraseFile !== "" && recipientFile !== "")
    throw new CommandError(
      "--keys-passphrase-file and --keys-recipient-file exclude one another; set only one of them",
    );
  if (passphraseFile !== "") return { passphrase: read(passphraseFile, passphraseOf) };
  return recipientFile === "" ? undefined : { recipient: read(recipientFile, recipientOf) };
}

/**
 * Reads the passphrase, or the recipient's private key, that opens the keys of a backup.
 *
 * @returns undefined if both names of files are empty
 * @throws CommandError if the file cannot be used, or if both files are named
 */
export function readOpener(passphraseFile: string, identityFile: string): Opener | undefined {
  if (passphraseFile !== "" && identityFile !== "")
    throw new CommandError(
      "--keys-passphrase-file and --keys-identity-file exclude one another; set only one of them",
    );
  if (passphraseFile !== "") return { passphrase: read(passphraseFile, passphraseOf) };
  return identityFile === "" ? undefined : { identity: read(identityFile, identityOf) };
}

function read<Secret>(file: string, parse: (text: string) => Secret): Secret {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}`);
  }
  if (text.length > MAX_CHARS) throw new CommandError(`${file} is too large for a secret; name another file`);
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof SealedKeysError) throw new CommandError(`${file}: ${error.message}`);
    throw error;
  }
}
