import { createHash, timingSafeEqual } from "node:crypto";
import type { Timers } from "@depute/core";
import { textOfFile } from "./files.ts";
import { CHECK_INTERVAL_MS } from "./identities/identities.ts";
import type { Logger } from "./log.ts";

/** The secrets of a process that shares no secret with other processes: it sends none and accepts none. */
export const NO_INTERNAL_SECRETS: Pick<InternalSecrets, "sent" | "accepts"> = {
  sent: "",
  accepts: () => false,
};

export interface InternalSecretsOptions {
  /** The value of DEPUTE_INTERNAL_SECRET: one secret per line; empty for no secret. */
  readonly text: string;
  /** The path in DEPUTE_INTERNAL_SECRET_FILE; empty for none. The file is read again when it changes. */
  readonly path: string;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * The secrets by which the platform's processes recognize each other's calls. A process sends the first secret, and
 * accepts all of them. With a second secret, operators can therefore change the secret in one process after the other,
 * without a restart.
 */
export class InternalSecrets {
  readonly #options: InternalSecretsOptions;
  #secrets: readonly string[] = [];
  #digests: readonly Buffer[] = [];
  #isRefused = false;
  #cancel: () => void = () => {};

  constructor(options: InternalSecretsOptions) {
    this.#options = options;
    this.#use(secretsIn(options.text));
    if (options.path !== "") this.#checkLater();
  }

  /** The secret that calls to other processes carry; empty for none. */
  get sent(): string {
    return this.#secrets[0] ?? "";
  }

  /** Compares a text with every secret in constant time. False for every text if no secret is configured. */
  accepts(text: string | null): boolean {
    if (text === null) return false;
    const digest = sha256(text);
    return this.#digests.reduce((isKnown, each) => timingSafeEqual(each, digest) || isKnown, false);
  }

  /** Reads the file again. If the file contains no secret, logs this once and keeps the secrets in use. */
  check(): void {
    const { path, log } = this.#options;
    try {
      const secrets = secretsIn(textOfFile(path));
      if (secrets.length === 0) throw new Error("the file contains no secret; write a secret into it");
      this.#isRefused = false;
      if (secrets.join("\n") === this.#secrets.join("\n")) return;
      this.#use(secrets);
      log.info({ secrets: this.#secrets.length }, "internal secret read again");
    } catch (err) {
      if (!this.#isRefused)
        log.error({ err, path }, "the changed internal secret cannot be used; the old secret stays in use");
      this.#isRefused = true;
    }
  }

  close(): void {
    this.#cancel();
  }

  #use(secrets: readonly string[]): void {
    this.#secrets = secrets;
    this.#digests = secrets.map(sha256);
  }

  #checkLater(): void {
    this.#cancel = this.#options.timers.after(CHECK_INTERVAL_MS, () => {
      this.check();
      this.#checkLater();
    });
  }
}

function secretsIn(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
