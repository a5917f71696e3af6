import type { Timers } from "@depute/core";
import { type CredentialHolder, type Credentials, noCredentials, parseCredentials } from "./credentials.ts";
import { textOfFile } from "./files.ts";
import { CHECK_INTERVAL_MS } from "./identities/identities.ts";
import { parseIdentities } from "./identities/identities-file.ts";
import type { RoleName } from "./identities/identities-schema.ts";
import type { Logger } from "./log.ts";
import { SettingsError } from "./settings.ts";

export interface WatchedCredentialsOptions {
  /** The path of the credentials file; empty for none. */
  readonly path: string;
  /** The path of the identities file; empty for none. Both files must name the same organization for a principal. */
  readonly identitiesPath: string;
  readonly timers: Timers;
  readonly log: Logger;
}

/** The credentials of a file that is read again when it changes. A malformed file is refused as a whole. */
export class WatchedCredentials implements Credentials {
  readonly #options: WatchedCredentialsOptions;
  #loaded: Credentials = noCredentials;
  #text = "";
  #refused = "";
  #cancel: () => void = () => {};

  /** @throws SettingsError that names the file and its first fault; the message quotes no text of the file */
  constructor(options: WatchedCredentialsOptions) {
    this.#options = options;
    const { path } = options;
    if (path === "") return;
    try {
      this.#text = textOfFile(path);
      this.#loaded = parseCredentials(this.#text);
    } catch (cause) {
      throw new SettingsError(`cannot use the credentials file ${path}: ${(cause as Error).message}`, {
        cause,
      });
    }
    this.#checkLater();
  }

  get size(): number {
    return this.#loaded.size;
  }

  holderOf(secret: string): CredentialHolder | undefined {
    return this.#loaded.holderOf(secret);
  }

  organizationOf(principal: string): string {
    return this.#loaded.organizationOf(principal);
  }

  rolesOf(principal: string): readonly RoleName[] | undefined {
    return this.#loaded.rolesOf(principal);
  }

  names(principal: string): boolean {
    return this.#loaded.names(principal);
  }

  /** Reads the file again. Logs a malformed file once, and keeps the credentials in use. */
  check(): void {
    const { path, identitiesPath, log } = this.#options;
    try {
      const text = textOfFile(path);
      if (text === this.#text) return;
      const next = parseCredentials(text);
      if (identitiesPath !== "")
        parseIdentities(textOfFile(identitiesPath), (principal) => next.organizationOf(principal));
      [this.#loaded, this.#text, this.#refused] = [next, text, ""];
      log.info("credentials read again");
    } catch (cause) {
      const { message } = cause as Error;
      if (message !== this.#refused)
        log.error(
          { fault: message },
          "the changed credentials cannot be used; the old credentials stay in use",
        );
      this.#refused = message;
    }
  }

  close(): void {
    this.#cancel();
  }

  #checkLater(): void {
    this.#cancel = this.#options.timers.after(CHECK_INTERVAL_MS, () => {
      this.check();
      this.#checkLater();
    });
  }
}
