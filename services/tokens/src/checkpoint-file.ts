import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { type Logger, SettingsError } from "@depute/service";
import type { Store } from "@depute/store";
import { type Checkpoint, isContinued, isSignedCheckpoint } from "./rules/checkpoint.ts";
import { headAt } from "./store/revocation-rows.ts";

const WRITE_AFTER_MS = 1000;

interface CheckpointFileOptions {
  file: string;
  engine: CryptoEngine;
  /** Whose signature it has to have: the platform's root. */
  signer: string;
  timers: Timers;
  log: Logger;
  /** The present state, signed. */
  sign: () => Checkpoint;
}

/**
 * What this process has seen of the revocation log, kept beside the store: a store that was put back from an older copy
 * has forgotten revocations that were acknowledged, and nothing in it would say so.
 */
export class CheckpointFile {
  readonly #options: CheckpointFileOptions;
  #cancel: (() => void) | undefined;

  constructor(options: CheckpointFileOptions) {
    this.#options = options;
  }

  /**
   * Compares the log with what was seen of it before.
   *
   * @throws SettingsError when the log has gone back or says something else; the service then does not start
   */
  async check(store: Store): Promise<void> {
    const { file, log } = this.#options;
    const seen = this.#read();
    if (seen === undefined) return;
    const headThen = await store.read((tx) => headAt(tx, seen.sequence));
    if (isContinued(seen, headThen)) return;
    log.error({ seen: seen.sequence }, "the revocation log is not the one that was seen before");
    throw new SettingsError(
      `the revocation log does not go on from place ${seen.sequence}, which ${file} says that it had: revocations ` +
        "are missing. Put the newer store back; or, knowing that what was revoked since may be used again, remove the file",
    );
  }

  /** Writes what is seen now, soon. */
  note(): void {
    this.#cancel ??= this.#options.timers.after(WRITE_AFTER_MS, () => this.#write());
  }

  close(): void {
    if (this.#cancel === undefined) return;
    this.#cancel();
    this.#write();
  }

  #write(): void {
    this.#cancel = undefined;
    const { file, log, sign } = this.#options;
    try {
      writeFileSync(`${file}.new`, JSON.stringify(sign()), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    } catch (err) {
      log.error({ err }, "the checkpoint of the revocation log cannot be written");
    }
  }

  #read(): Checkpoint | undefined {
    const { file, engine, signer, log } = this.#options;
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new SettingsError(`${file} cannot be read: ${(cause as Error).message}`, { cause });
    }
    const checkpoint = parse(text);
    if (checkpoint !== undefined && isSignedCheckpoint(engine, checkpoint, signer)) return checkpoint;
    // Another root signed it, or somebody wrote over it: it proves nothing.
    log.warn(
      { file },
      "the checkpoint of the revocation log is not signed by the platform's root; it is not used",
    );
    return undefined;
  }
}

function parse(text: string): Checkpoint | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Checkpoint) : undefined;
  } catch {
    return undefined;
  }
}
