import { readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
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
  /** Has the state read the whole log. */
  look: () => Promise<void>;
}

/**
 * What this process has seen of the revocation log, kept beside the store: a store that was put back from an older copy
 * has forgotten revocations that were acknowledged, and nothing in it would say so.
 */
export class CheckpointFile {
  readonly #options: CheckpointFileOptions;
  #cancel: (() => void) | undefined;
  /** Up to which sequence the file has the log, durably. */
  #saved = 0;
  /** The write that goes on, and the one that begins after it; whoever comes meanwhile shares the latter. */
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;

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
    this.#cancel ??= this.#options.timers.after(WRITE_AFTER_MS, () => {
      this.#cancel = undefined;
      this.#write().catch((err: unknown) => this.#failed(err));
    });
  }

  /**
   * Resolves when the file has the log up to a sequence, durably. Calls that come while the file is written share the next
   * write.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when the file cannot be written; the revocation counts all the same
   */
  async saved(sequence: number): Promise<void> {
    if (this.#saved >= sequence) return;
    try {
      await this.#write();
      if (this.#saved >= sequence) return;
      // Another process wrote to the log before this one.
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

  async close(): Promise<void> {
    this.#cancel?.();
    const wasNoted = this.#cancel !== undefined;
    this.#cancel = undefined;
    await (wasNoted ? this.#write() : (this.#next ?? this.#writing))?.catch((err: unknown) =>
      this.#failed(err),
    );
  }

  /** Writes what is known when the writing begins, which is after this call. */
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

  /** Puts a new file in the place of the old one: after a crash there is one of the two, whole. */
  async #replace(): Promise<void> {
    const { file, sign } = this.#options;
    const checkpoint = sign();
    if (checkpoint.sequence < this.#saved) return;
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
  }

  #failed(err: unknown): void {
    this.#options.log.error({ err }, "the checkpoint of the revocation log cannot be written");
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
