import type { Clock, Timers } from "@depute/core";
import type { Credentials } from "../credentials.ts";
import { textOfFile } from "../files.ts";
import type { Logger } from "../log.ts";
import { SettingsError } from "../settings.ts";
import {
  type IdentitiesFile,
  type IdentityHolder,
  type IssuerEntry,
  parseIdentities,
} from "./identities-file.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { identityRefused } from "./refusals.ts";
import { isJwt, type ProvenSubject, type SubjectToken, TokenVerifier } from "./token-verifier.ts";

/**
 * Milliseconds between two reads of the files. The files are polled, because no reliable event reports that an
 * orchestrator replaced a mounted file.
 */
export const CHECK_INTERVAL_MS = 2000;

export interface IdentitiesOptions {
  /** The path of the identities file; empty for none. */
  readonly path: string;
  readonly credentials: Pick<Credentials, "organizationOf">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * The external identities that this platform trusts, such as login tokens of issuers and client certificates. The class
 * reads the files again when they change.
 */
export class Identities {
  readonly #options: IdentitiesOptions;
  #loaded: Loaded;
  #refused = "";
  #cancel: () => void = () => {};

  private constructor(options: IdentitiesOptions) {
    this.#options = options;
    this.#loaded = load(options, new Map());
  }

  /**
   * Reads the file. With an empty path, the platform trusts no external identity.
   *
   * @throws SettingsError that names the first fault
   */
  static open(options: IdentitiesOptions): Identities {
    let identities: Identities;
    try {
      identities = new Identities(options);
    } catch (cause) {
      const { message } = cause as Error;
      throw new SettingsError(`the file of DEPUTE_IDENTITIES_FILE cannot be used: ${message}`, { cause });
    }
    if (options.path !== "") identities.#checkLater();
    return identities;
  }

  /** The issuers of the accepted login tokens, for the metadata of protected resources (RFC 9728). */
  get issuers(): readonly string[] {
    return this.#loaded.file.issuers.map(({ issuer }) => issuer);
  }

  /** Whether client certificates authenticate callers. */
  get hasCertificates(): boolean {
    return this.#loaded.certificates.size > 0;
  }

  /** Whether a Bearer credential is a login token that {@link verify} may accept. */
  takes(credential: string): boolean {
    return this.#loaded.file.issuers.length > 0 && isJwt(credential);
  }

  /**
   * Returns the principal of a login token that was verified before and is still valid; undefined for any other token.
   */
  known(token: string): IdentityHolder | undefined {
    return this.#loaded.tokens.known(token);
  }

  /**
   * Verifies a login token (JWT), and returns its principal.
   *
   * @throws DeputeError UNAUTHENTICATED with the metadata `fault`
   */
  verify(token: string): Promise<IdentityHolder> {
    return this.#loaded.tokens.verify(token);
  }

  /**
   * Verifies a login token or identity assertion that its bearer wants to exchange, and returns its subject.
   *
   * @throws DeputeError UNAUTHENTICATED with the metadata `fault`
   */
  subjectOf(subject: SubjectToken): Promise<ProvenSubject> {
    return this.#loaded.tokens.subjectOf(subject);
  }

  /**
   * Returns the principal of a client certificate.
   *
   * @param spiffeId empty if the certificate has no SPIFFE id
   * @throws DeputeError UNAUTHENTICATED for a certificate without a SPIFFE id, or with an unknown one
   */
  holderOfCertificate(spiffeId: string): IdentityHolder {
    if (spiffeId === "") throw identityRefused("no_spiffe_id");
    const holder = this.#loaded.certificates.get(spiffeId);
    if (holder === undefined) throw identityRefused("not_mapped");
    return holder;
  }

  /** Whether the file names the principal. */
  names(principal: string): boolean {
    return this.#loaded.principals.has(principal);
  }

  /** Reads the files again. Logs a malformed file once, and keeps the identities in use. */
  check(): void {
    const { log } = this.#options;
    let next: Loaded;
    try {
      next = load(this.#options, this.#loaded.keys, this.#loaded.text);
    } catch (cause) {
      const { message } = cause as Error;
      if (message !== this.#refused)
        log.error(
          { fault: message },
          "the changed identities cannot be used; the old identities stay in use",
        );
      this.#refused = message;
      return;
    }
    this.#refused = "";
    if (next === UNCHANGED) return;
    this.#loaded = next;
    log.info("identities read again");
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

interface Loaded {
  readonly file: IdentitiesFile;
  readonly tokens: TokenVerifier;
  readonly certificates: ReadonlyMap<string, IdentityHolder>;
  readonly principals: ReadonlySet<string>;
  /**
   * The keys of each issuer. The map's key is the JSON text of all members of the issuer's entry that determine its
   * keys.
   */
  readonly keys: ReadonlyMap<string, IssuerKeys>;
  /** The joined texts of all files. If the next read gives the same text, no file has changed. */
  readonly text: string;
}

/** The value that `load` returns if no file has changed. */
const UNCHANGED = {} as Loaded;

/**
 * Reads and checks all files.
 *
 * @param keys the current keys of the issuers; an issuer keeps its keys unless its name, `jwksUri`, `tokenFile` or
 * authorities have changed
 * @param before the joined texts of the files at the previous read; absent for the first read
 */
function load(options: IdentitiesOptions, keys: ReadonlyMap<string, IssuerKeys>, before?: string): Loaded {
  const { path, credentials, clock } = options;
  const text = path === "" ? "{}" : textOfFile(path);
  const file = parseIdentities(text, (principal) => credentials.organizationOf(principal));
  const authorities = file.issuers.map(({ caFile }) =>
    caFile === undefined ? undefined : authoritiesIn(caFile),
  );
  const content = JSON.stringify([text, ...authorities.map((each) => each ?? null)]);
  if (content === before) return UNCHANGED;
  const nextKeys = new Map<string, IssuerKeys>();
  const issuers = file.issuers.map((entry, index) => {
    const name = JSON.stringify([entry.issuer, entry.jwksUri, entry.tokenFile, authorities[index]]);
    const issuerKeys = keys.get(name) ?? keysOf(entry, authorities[index], options);
    nextKeys.set(name, issuerKeys);
    return { entry, keys: issuerKeys };
  });
  const holders = [...file.issuers.flatMap(({ identities }) => identities), ...file.certificates];
  return {
    file,
    tokens: new TokenVerifier(issuers, clock),
    certificates: new Map(file.certificates.map((each) => [each.spiffeId, each])),
    principals: new Set(holders.map(({ principal }) => principal)),
    keys: nextKeys,
    text: content,
  };
}

function keysOf(entry: IssuerEntry, authorities: string | undefined, options: IdentitiesOptions): IssuerKeys {
  const { clock, timers, log } = options;
  return new IssuerKeys({
    entry,
    ...(authorities !== undefined && { authorities }),
    clock,
    timers,
    onFault: (error) =>
      log.warn({ issuer: entry.issuer, fault: (error as Error).message }, "the issuer's keys cannot be read"),
  });
}

function authoritiesIn(caFile: string): string {
  const pem = textOfFile(caFile);
  if (!pem.includes("-----BEGIN CERTIFICATE-----"))
    throw new Error(
      `the file ${caFile} contains no certificate; write the certificates of the authorities into it, in PEM`,
    );
  return pem;
}
