import { isIP } from "node:net";
import type { Clock, Timers } from "@depute/core";
import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import { textOfFile } from "../files.ts";
import { AllowedHosts } from "../outbound/allowed-hosts.ts";
import { Outbound, readText } from "../outbound/outbound.ts";
import { isPublicAddress } from "../outbound/public-address.ts";
import { type IssuerEntry, isIssuerAddress } from "./identities-file.ts";

/** Maximum number of bytes of a discovery document or of a document with keys. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;
/** Milliseconds in which one document must arrive as a whole. */
export const DOCUMENT_TIMEOUT_MS = 5000;
/** Maximum number of keys of an issuer. */
export const MAX_KEYS = 64;
/**
 * Milliseconds after which the next use reads the keys again. After this read, a key that the issuer has withdrawn is
 * refused.
 */
export const FRESH_MS = 10 * 60_000;
/** Milliseconds after a read for which the keys stay in use while the issuer cannot be reached. */
export const STALE_MS = 60 * 60_000;
/**
 * Minimum milliseconds between two reads. Otherwise, login tokens with invented key ids could cause load at the issuer.
 */
export const COOLDOWN_MS = 30_000;

export interface IssuerKeysOptions {
  readonly entry: Pick<IssuerEntry, "issuer" | "jwksUri" | "tokenFile">;
  /**
   * Certificates in PEM of the authorities that may sign the issuer's certificate. Default: the authorities of
   * Node.js.
   */
  readonly authorities?: string;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Receives the error of each failed read of the keys. */
  readonly onFault: (error: unknown) => void;
}

/**
 * The public keys of one issuer, from `jwksUri` of the identities file, else from the address in the issuer's discovery
 * document. (OpenID Connect Discovery 1.0, RFC 7517) The class reads the keys at first use, when a login token names an
 * unknown key, and FRESH_MS after the last read.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: { readonly find: JWTVerifyGetKey; readonly readAt: number } | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /**
   * Returns the key that verifies a login token, for `jwtVerify`.
   *
   * @throws JWKSNoMatchingKey for an unknown key; KeysUnavailable when the keys cannot be read; other errors of jose
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#age() > FRESH_MS) await this.#read();
    if (this.#keys === undefined || this.#age() > STALE_MS) throw new KeysUnavailable();
    try {
      return await this.#keys.find(header, token);
    } catch (error) {
      const before = this.#keys;
      const { errors } = await import("jose");
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#read();
      if (this.#keys === before) throw error;
      return await this.#keys.find(header, token);
    }
  };

  /**
   * Returns the milliseconds since the keys were read; infinity before the first read. The clock is monotonic, so a
   * change of the time of day has no effect.
   */
  #age(): number {
    return this.#keys === undefined
      ? Number.POSITIVE_INFINITY
      : this.#options.clock.monotonic() - this.#keys.readAt;
  }

  /**
   * Reads the keys, unless the last read began less than COOLDOWN_MS ago. Concurrent calls share one read. After a
   * failure, the keys in use stay.
   */
  #read(): Promise<void> {
    const { clock, onFault } = this.#options;
    if (this.#reading !== undefined) return this.#reading;
    if (clock.monotonic() - this.#triedAt < COOLDOWN_MS) return Promise.resolve();
    this.#triedAt = clock.monotonic();
    this.#reading = this.#fetchKeys()
      .then((find) => {
        this.#keys = { find, readAt: clock.monotonic() };
      }, onFault)
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #fetchKeys(): Promise<JWTVerifyGetKey> {
    const { issuer, jwksUri } = this.#options.entry;
    const address = jwksUri ?? (await this.#discover(issuer));
    // The operator names the issuer and `jwksUri`, so both may be private addresses. An address from the discovery
    // document may be private only on the issuer's own host.
    const hosts = [
      `private:${hostOf(issuer)}`,
      jwksUri === undefined ? hostOf(address) : `private:${hostOf(address)}`,
    ];
    const document = (await this.#fetchJson(address, hosts)) as Partial<JSONWebKeySet> | null;
    if (!Array.isArray(document?.keys)) throw new Error("the issuer's keys are not a JSON Web Key Set");
    if (document.keys.length > MAX_KEYS) throw new Error(`the issuer has more than ${MAX_KEYS} keys`);
    const { createLocalJWKSet } = await import("jose");
    return createLocalJWKSet(document as JSONWebKeySet);
  }

  /**
   * Returns the address of the keys, from the issuer's discovery document. (OpenID Connect Discovery 1.0, sections 4.1
   * and 4.3)
   */
  async #discover(issuer: string): Promise<string> {
    const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const document = await this.#fetchJson(address, [`private:${hostOf(issuer)}`]);
    const { issuer: named, jwks_uri: jwksUri } = (document ?? {}) as Record<string, unknown>;
    if (named !== issuer) throw new Error("the discovery document names another issuer");
    if (typeof jwksUri !== "string" || !isIssuerAddress(jwksUri))
      throw new Error("the discovery document has no jwks_uri with https");
    const host = hostOf(jwksUri).replace(/^\[(.*)\]$/, "$1");
    if (isIP(host) !== 0 && !isPublicAddress(host) && hostOf(jwksUri) !== hostOf(issuer))
      throw new Error(
        "jwks_uri of the discovery document is a private address: set jwksUri, if the address is correct",
      );
    return jwksUri;
  }

  async #fetchJson(address: string, hosts: readonly string[]): Promise<unknown> {
    const { entry, authorities, timers } = this.#options;
    const outbound = new Outbound({
      hosts: new AllowedHosts(hosts),
      ...(authorities !== undefined && { authorities }),
    });
    const timeout = new AbortController();
    const cancel = timers.after(DOCUMENT_TIMEOUT_MS, () =>
      timeout.abort(new Error(`the document did not arrive within ${DOCUMENT_TIMEOUT_MS} ms`)),
    );
    try {
      const { status, body } = await outbound.send(address, {
        headers: { accept: "application/json", ...this.#authorization(entry, address) },
        signal: timeout.signal,
        idleMs: DOCUMENT_TIMEOUT_MS,
        maxBytes: MAX_DOCUMENT_BYTES,
      });
      // This also refuses redirects, which could lead to an address that the operator did not name.
      if (status !== 200) throw new Error(`the issuer answered with status ${status}`);
      return parseDocument(await readText(body));
    } finally {
      cancel();
      outbound.close();
    }
  }

  /**
   * Returns the `authorization` header with the Bearer token that the issuer requires of the platform. Empty without
   * `tokenFile`, and for an address whose origin the operator has not named, so that no other host gets this token.
   */
  #authorization({ issuer, jwksUri, tokenFile }: IssuerKeysOptions["entry"], address: string) {
    const named = [issuer, ...(jwksUri === undefined ? [] : [jwksUri])].map((each) => new URL(each).origin);
    if (tokenFile === undefined || !named.includes(new URL(address).origin)) return {};
    return { authorization: `Bearer ${textOfFile(tokenFile).trim()}` };
  }
}

/** Thrown when an issuer's keys are not known, and cannot be read now. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

/** Parses JSON. The error quotes nothing of the text, because the text could contain the platform's Bearer token. */
function parseDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("the issuer's document is not JSON");
  }
}

function hostOf(address: string): string {
  return new URL(address).hostname;
}
