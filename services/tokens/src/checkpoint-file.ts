import { readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { isSignedCheckpoint } from "@depute/dct/transparency";
import { type Logger, SettingsError } from "@depute/service";
import type { Store } from "@depute/store";
import { type FileCheckpoint, isContinued, parseCheckpoint } from "./rules/checkpoint.ts";
import { headAt } from "./store/revocation-rows.ts";
import { lastRootChange } from "./store/root-key-rows.ts";

const WRITE_AFTER_MS = 1000;

interface CheckpointFileOptions {
  file: string;
  engine: CryptoEngine;
  /**
   * The principal of the root key in the key file. The checkpoint file must have a signature of this key, also after a
   * rotation of the root.
   */
  signer: string;
  timers: Timers;
  log: Logger;
  /** Signs the current state of the log and of the root keys. */
  sign: () => FileCheckpoint;
  /** Reads the new entries of the revocation log into this process's state. */
  look: () => Promise<void>;
}

/**
 * The file with the last known state of the revocation log and of the root keys, outside the store. The file shows
 * whether an operator has restored an old copy of the store. Such a copy lacks acknowledged revocations, or accepts a
 * retired root again, and nothing in the copy shows the loss.
 */
export class CheckpointFile {
  readonly #options: CheckpointFileOptions;
  #cancel: (() => void) | undefined;
  /** The sequence of the last log entry that the file durably covers. */
  #saved = 0;
  /** The number of the last change of a root key that the file durably covers. */
  #savedRootChange = 0;
  /** The running write, and the next write. All calls during a write wait for the same next write. */
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(options: CheckpointFileOptions) {
    this.#options = options;
  }

  /**
   * Compares the revocation log and the root keys with the checkpoint in the file. Without a file, does nothing.
   *
   * @throws SettingsError when the log is shorter or differs, a change of a root key is missing, or the file cannot be
   * read; the service then does not start
   */
  async check(store: Store): Promise<void> {
    const { file, log } = this.#options;
    const fileCheckpoint = this.#read();
    if (fileCheckpoint === undefined) return;
    const { headThen, rootChange } = await store.read(async (tx) => ({
      headThen: await headAt(tx, fileCheckpoint.sequence),
      rootChange: await lastRootChange(tx),
    }));
    if (rootChange < (fileCheckpoint.rootChange ?? 0)) {
      throw new SettingsError(
        `the root keys are older than ${file} says: a rotation or retirement is missing, so a retired root would count ` +
          "again. Restore the newer store. Or delete the file, and then rotate the root again",
      );
    }
    if (isContinued(fileCheckpoint, headThen)) return;
    log.error({ seen: fileCheckpoint.sequence }, "the revocation log differs from the checkpoint");
    throw new SettingsError(
      `the revocation log does not continue entry ${fileCheckpoint.sequence}, which ${file} covers: revocations ` +
        "are missing. Restore the newer store. Or delete the file, if you accept that revoked tokens may be valid again",
    );
  }

  /** Schedules a write of the current state. */
  note(): void {
    this.#cancel ??= this.#options.timers.after(WRITE_AFTER_MS, () => {
      this.#cancel = undefined;
      this.#write().catch((err: unknown) => this.#failed(err));
    });
  }

  /**
   * Resolves when the file durably covers the log up to a sequence.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when the file cannot be written; the revocation is nevertheless in force
   */
  async saved(sequence: number): Promise<void> {
    if (this.#saved >= sequence) return;
    try {
      await this.#write();
      if (this.#saved >= sequence) return;
      // Another process may have logged the entry, so this process may not have read it yet.
      await this.#options.look();
      await this.#write();
    } catch (cause) {
      this.#failed(cause);
      throw new DeputeError(
        ErrorReason.DEPENDENCY_UNAVAILABLE,
        "the revocation is recorded, but the checkpoint beside the store cannot be written; repeat the call",
        { metadata: { service: "tokens" }, cause },
      );
    }
  }

  /**
   * Resolves when the file durably covers a change of a root key.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when the file cannot be written; the change is in force anyway
   */
  async savedRoot(change: number): Promise<void> {
    if (this.#savedRootChange >= change) return;
    await this.#write().catch((cause: unknown) => {
      this.#failed(cause);
      throw new DeputeError(
        ErrorReason.DEPENDENCY_UNAVAILABLE,
        "the root keys are changed, but the checkpoint beside the store cannot be written; repeat the call",
        { metadata: { service: "tokens" }, cause },
      );
    });
  }

  async close(): Promise<void> {
    this.#cancel?.();
    const wasNoted = this.#cancel !== undefined;
    this.#cancel = undefined;
    await (wasNoted ? this.#write() : (this.#next ?? this.#writing))?.catch((err: unknown) =>
      this.#failed(err),
    );
  }

  /**
   * Writes the file after the running write has ended. The write covers the log's state at the write's start, and so at
   * this call.
   */
  #write(): Promise<void> {
    this.#next ??= (this.#writing ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        const writing = this.#replace();
        this.#writing = writing;
        this.#next = undefined;
        return writing;
      });
    return this.#next;
  }

  /**
   * Replaces the file atomically. After a crash, the file has either the complete earlier content or the complete new
   * content.
   */
  async #replace(): Promise<void> {
    const { file, sign } = this.#options;
    const checkpoint = sign();
    const { rootChange = 0 } = checkpoint;
    if (checkpoint.sequence < this.#saved || rootChange < this.#savedRootChange) return;
    const written = await open(`${file}.new`, "w", 0o600);
    try {
      await written.writeFile(JSON.stringify(checkpoint));
      await written.sync();
    } finally {
      await written.close();
    }
    await rename(`${file}.new`, file);
    const folder = await open(dirname(file), "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    this.#saved = checkpoint.sequence;
    this.#savedRootChange = rootChange;
  }

  #failed(err: unknown): void {
    this.#options.log.error({ err }, "the checkpoint of the revocation log cannot be written");
  }

  #read(): FileCheckpoint | undefined {
    const { file, engine, signer, log } = this.#options;
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new SettingsError(`${file} cannot be read: ${(cause as Error).message}`, { cause });
    }
    const checkpoint = parseCheckpoint(text);
    if (checkpoint !== undefined && isSignedCheckpoint(engine, checkpoint, signer)) return checkpoint;
    // Another root signed the file, or another program wrote it. Such a file proves nothing.
    log.warn(
      { file },
      "the checkpoint of the revocation log is not signed by the platform's root; it is not used",
    );
    return undefined;
  }
}
