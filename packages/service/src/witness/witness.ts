import type { Timers } from "@depute/core";
import type { Logger } from "../log.ts";
import { SettingsError } from "../settings.ts";
import { HeadMovedError, type WitnessPlace } from "./witness-place.ts";

/** Milliseconds from a change of the log to the publication of its head. */
const PUBLISH_AFTER_MS = 250;
/** Milliseconds from a publication that failed, or during which the log changed, to the next publication. */
const RETRY_MS = 5_000;
/**
 * Maximum number of writes for one publication. A write fails if another replica has published a head in the meantime.
 */
const MAX_TRIES = 3;

/** The result of the comparison of a published head with the log. */
export type Verdict =
  /** The log contains the head, or continues from it. */
  | "continued"
  /** The log has fewer leaves than the head states, or other leaves. */
  | "older"
  /** The log continues from the head, but the head states a later change of the platform's root keys. */
  | "older root keys"
  /** Another platform signed the head, or the text is not a head. */
  | "foreign";

export interface WitnessOptions {
  readonly place: WitnessPlace;
  /** The log's name in messages, such as "revocation log". */
  readonly subject: string;
  readonly timers: Timers;
  readonly log: Logger;
  /** Returns the log's current signed head, in the form in which the witness's place stores it. */
  readonly head: () => Promise<string>;
  /** Compares a published head with the log. */
  readonly judge: (published: string) => Promise<Verdict>;
}

/**
 * Publishes the heads of a log to a place outside the data folder. At the start, it compares the log with the last
 * published head. So the service does not start on an old copy of the data folder, even if the copy is consistent.
 */
export class Witness {
  readonly #options: WitnessOptions;
  #cancel: (() => void) | undefined;
  #publishing: Promise<void> | undefined;
  #isNoted = false;
  /**
   * Whether `check` has succeeded. Before that, nothing is published, because a publication could replace the head of
   * another platform.
   */
  #isChecked = false;
  #isClosed = false;

  constructor(options: WitnessOptions) {
    this.#options = options;
  }

  /**
   * Compares the log with the last published head, then publishes the log's current head. Call this method before the
   * service takes calls.
   *
   * @throws SettingsError when the log is older, when the head is another platform's, or when the place cannot be read
   * or written
   */
  async check(): Promise<void> {
    const { place, subject, judge } = this.#options;
    const { address, removal = "remove that head" } = place;
    const published = await place.read().catch((cause: unknown) => {
      throw new SettingsError(
        `DEPUTE_WITNESS: ${address} cannot be read: ${reasonOf(cause)}. Without it, the platform cannot detect an old copy of its data; make it available`,
        { cause },
      );
    });
    const verdict = published === undefined ? "continued" : await judge(published);
    if (verdict === "foreign") {
      throw new SettingsError(
        `DEPUTE_WITNESS: ${address} is not a head of this platform's ${subject}; use a separate place for each platform. Or, if a rotation of ` +
          "the root key is missing here, restore the newer data",
      );
    }
    if (verdict === "older") {
      throw new SettingsError(
        `the data is an old copy: the ${subject} does not continue from the head at ${address}. Restore the newer data. Or, if ` +
          `you accept that its later records are lost and later revocations are undone, ${removal}`,
      );
    }
    if (verdict === "older root keys") {
      throw new SettingsError(
        `the data is an old copy: its root keys are older than the head at ${address} states, so a retired root would count ` +
          `again. Restore the newer data. Or, if you accept that its later records are lost, ${removal}, and then rotate the root again`,
      );
    }
    await this.#write().catch((cause: unknown) => {
      throw new SettingsError(
        `DEPUTE_WITNESS: ${address} cannot be written: ${reasonOf(cause)}; make it writable`,
        { cause },
      );
    });
    this.#isChecked = true;
    if (this.#isNoted) this.#schedule(PUBLISH_AFTER_MS);
  }

  /** Schedules the publication of the head. Call it after each change of the log. */
  note(): void {
    this.#isNoted = true;
    if (this.#isChecked) this.#schedule(PUBLISH_AFTER_MS);
  }

  /** Publishes a head that `note` scheduled, and stops. Publishes nothing unless `check` has succeeded. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#publishing;
    if (this.#isNoted && this.#isChecked) await this.#publish();
  }

  #schedule(ms: number): void {
    if (this.#isClosed) return;
    this.#cancel ??= this.#options.timers.after(ms, () => {
      this.#publishing = this.#publish().finally(() => {
        this.#cancel = undefined;
        this.#publishing = undefined;
        if (this.#isNoted) this.#schedule(RETRY_MS);
      });
    });
  }

  /** Publishes the current head. The promise never rejects: after a failure, a later attempt publishes the head. */
  async #publish(): Promise<void> {
    const { place, subject, log } = this.#options;
    this.#isNoted = false;
    try {
      await this.#write();
    } catch (err) {
      this.#isNoted = true;
      log.error({ err, address: place.address }, `the head of the ${subject} cannot be published`);
    }
  }

  /**
   * Writes the log's current head. Tries again if another replica of the platform has written a head in the meantime.
   */
  async #write(): Promise<void> {
    const { place, head } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        return await place.write(await head());
      } catch (error) {
        if (!(error instanceof HeadMovedError) || tries === MAX_TRIES) throw error;
      }
    }
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  const { code } = (cause ?? error) as { readonly code?: unknown };
  return typeof code === "string" ? code : message;
}
