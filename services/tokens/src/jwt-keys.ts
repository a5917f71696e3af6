import type { Clock } from "@depute/core";
import type { SealedSecrets } from "@depute/service";
import type { Store } from "@depute/store";
import type { CryptoKey, JWK, JWTPayload } from "jose";
import { dueKeys, signingKey } from "./rules/jwt-keys.ts";
import { forgetJwtKey, insertJwtKey, type JwtKeyRow, readJwtKeys } from "./store/jwt-key-rows.ts";

/** The signature algorithm of projections. Most resource servers can verify it. (RFC 7518 section 3.4) */
export const PROJECTION_ALGORITHM = "ES256";
/** The media type of projections, for the header `typ`. (RFC 9068 section 2.1) */
const TYPE = "at+jwt";

interface JwtKeysOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly secrets: SealedSecrets;
  /** The age in milliseconds at which the service replaces a signing key. */
  readonly maxAgeMs: number;
}

/**
 * The keys that sign projections. The imports of jose are dynamic, because most services project no token. The first use creates the first key. The service publishes a successor an hour before
 * the successor signs. A replaced key stays published until its last projection has expired.
 */
export class JwtKeys {
  readonly #options: JwtKeysOptions;
  /** The decrypted private keys, by id; at most one for each published key. */
  readonly #opened = new Map<string, CryptoKey>();

  constructor(options: JwtKeysOptions) {
    this.#options = options;
  }

  /** Returns the public keys that the service publishes, as JSON Web Keys. */
  async published(): Promise<JWK[]> {
    return (await this.#current()).map(({ jwk }) => JSON.parse(jwk) as JWK);
  }

  /** Signs claims with the key that is active now. */
  async sign(claims: JWTPayload): Promise<string> {
    const row = signingKey(await this.#current(), this.#options.clock.now());
    if (row === undefined) throw new Error("no key is active");
    const key = await this.#open(row);
    const { SignJWT } = await import("jose");
    return new SignJWT(claims)
      .setProtectedHeader({ alg: PROJECTION_ALGORITHM, kid: row.kid, typ: TYPE })
      .sign(key);
  }

  /** Creates a successor key if one is due, deletes expired keys, and returns all remaining keys. */
  async #current(): Promise<JwtKeyRow[]> {
    const { store, clock, maxAgeMs } = this.#options;
    const keys = await store.read(readJwtKeys);
    const now = clock.now();
    const due = dueKeys(keys, now, maxAgeMs);
    if (due.create === undefined && due.forget.length === 0) return keys;
    const made = due.create === undefined ? undefined : await this.#make(due.create);
    return store.write(async (tx) => {
      // Another call may have created or deleted keys since the first read.
      const { create, forget } = dueKeys(await readJwtKeys(tx), now, maxAgeMs);
      if (create !== undefined && made !== undefined) await insertJwtKey(tx, made);
      for (const kid of forget) {
        await forgetJwtKey(tx, kid);
        this.#opened.delete(kid);
      }
      return readJwtKeys(tx);
    });
  }

  async #make(activateTime: number): Promise<JwtKeyRow> {
    const { calculateJwkThumbprint, exportJWK, generateKeyPair } = await import("jose");
    const pair = await generateKeyPair(PROJECTION_ALGORITHM, { extractable: true });
    const jwk = await exportJWK(pair.publicKey);
    const kid = await calculateJwkThumbprint(jwk);
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(pair.privateKey)));
    const sealed = this.#options.secrets.seal(secret, contextOfJwtKey(kid));
    secret.fill(0);
    const published = { ...jwk, kid, alg: PROJECTION_ALGORITHM, use: "sig" };
    return { kid, activateTime, jwk: JSON.stringify(published), sealed };
  }

  async #open({ kid, sealed }: JwtKeyRow): Promise<CryptoKey> {
    const known = this.#opened.get(kid);
    if (known !== undefined) return known;
    const secret = this.#options.secrets.open(sealed, contextOfJwtKey(kid));
    if (secret === undefined)
      throw new Error("the master key did not seal the signing keys; set the master key that sealed them");
    const jwk = JSON.parse(new TextDecoder().decode(secret)) as JWK;
    secret.fill(0);
    const { importJWK } = await import("jose");
    const key = await importJWK(jwk, PROJECTION_ALGORITHM);
    if (key instanceof Uint8Array) throw new Error("a signing key is symmetric");
    this.#opened.set(kid, key);
    return key;
  }
}

/** Returns the context to which a sealed key is bound. Another context cannot open the key. */
export function contextOfJwtKey(kid: string) {
  return { purpose: "jwt-key", kid };
}
