import { createHash } from "node:crypto";
import { type Clock, isObject } from "@depute/core";
import type { JWTPayload } from "jose";
import { holderOfClaims, type IdentityHolder, type IssuerEntry } from "./identities-file.ts";
import { type IssuerKeys, KeysUnavailable } from "./issuer-keys.ts";
import { type IdentityFault, identityRefused } from "./refusals.ts";

/** The module jose. The imports are dynamic, because most processes never get a JSON Web Token. */
type Jose = typeof import("jose");

/** An issuer with its keys. */
export interface TrustedIssuer {
  readonly entry: IssuerEntry;
  readonly keys: Pick<IssuerKeys, "find">;
}

/** Maximum number of characters of a login token or an identity assertion. */
const MAX_TOKEN = 16_384;
/** Maximum number of verified login tokens in the cache. */
export const MAX_VERIFIED = 10_000;
/**
 * Maximum milliseconds for which the result of a verification is cached. A login token whose key was withdrawn is
 * therefore soon refused.
 */
export const REMEMBER_MS = 60_000;

const DEFAULT_SKEW_SECONDS = 30;
const DEFAULT_ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"];
/** The types of login tokens. (RFC 9068 section 2.1) ID tokens and tokens of Kubernetes have the type `JWT` or none. */
const TYPES = new Set(["", "jwt", "at+jwt", "application/at+jwt"]);

/** The type of identity assertions (draft-ietf-oauth-identity-assertion-authz-grant section 3.1). */
const ID_JAG_TYPES = new Set(["oauth-id-jag+jwt", "application/oauth-id-jag+jwt"]);

/** A login token or identity assertion that its bearer exchanges for a DelegateOS token (RFC 8693). */
export interface SubjectToken {
  readonly token: string;
  /** `jwt` for an access or ID token; `id-jag` for an identity assertion. */
  readonly kind: "jwt" | "id-jag";
  /** The RFC 7638 thumbprint of the key that the bearer proved. */
  readonly thumbprint: string;
}

/** The subject of an exchanged login token or identity assertion. */
export interface ProvenSubject {
  /** The claim `iss` of the JSON Web Token; `subject` is its claim `sub`. */
  readonly issuer: string;
  readonly subject: string;
  readonly holder: IdentityHolder;
  /** Set for an identity assertion, which must be used only once. (RFC 7523 section 3, claim `jti`) */
  readonly assertion?: AssertionId;
}

/** The id of an assertion: its issuer and its `jti`, which is unique for this issuer. */
export interface AssertionId {
  readonly issuer: string;
  readonly jti: string;
  /**
   * The time from which every process refuses the assertion as expired, even with the allowed clock skew, in epoch
   * milliseconds.
   */
  readonly expiresAt: number;
}

/** @throws DeputeError UNAUTHENTICATED if a claim is missing that an identity assertion must have */
function assertionOf(
  { issuer, clockSkewSeconds = DEFAULT_SKEW_SECONDS }: IssuerEntry,
  { client_id: clientId, jti, exp = 0 }: JWTPayload,
): AssertionId {
  if (typeof clientId !== "string" || typeof jti !== "string") throw identityRefused("claim");
  return { issuer, jti, expiresAt: (exp + clockSkewSeconds) * 1000 };
}

/**
 * The form of a signed JSON Web Token (RFC 7515 section 3.1). The pattern allows an empty signature, so that a JSON Web
 * Token with `alg` none is recognized, and then refused.
 */
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

interface Verified {
  readonly holder: IdentityHolder;
  /**
   * The start of the period in which the cached result is valid, in epoch milliseconds. Outside this period, the login
   * token is verified again.
   */
  readonly from: number;
  readonly until: number;
}

/** Whether a Bearer credential has the form of a JSON Web Token. */
export function isJwt(credential: string): boolean {
  return COMPACT.test(credential);
}

/**
 * Verifies login tokens and identity assertions of trusted issuers. The results for login tokens are cached, by the
 * digest of the login token. A result expires after REMEMBER_MS, or with the login token if that expires earlier.
 */
export class TokenVerifier {
  readonly #issuers: ReadonlyMap<string, TrustedIssuer>;
  readonly #clock: Clock;
  readonly #verified = new Map<string, Verified>();

  constructor(issuers: readonly TrustedIssuer[], clock: Clock) {
    this.#issuers = new Map(issuers.map((each) => [each.entry.issuer, each]));
    this.#clock = clock;
  }

  /** Returns the cached principal of a verified login token; undefined if the cache has no valid result. */
  known(token: string): IdentityHolder | undefined {
    const found = this.#verified.get(digestOf(token));
    if (found === undefined) return undefined;
    const now = this.#clock.now();
    return now >= found.from && now < found.until ? found.holder : undefined;
  }

  /**
   * Verifies a login token, and returns its principal.
   *
   * @throws DeputeError UNAUTHENTICATED with the metadata `fault`
   */
  async verify(token: string): Promise<IdentityHolder> {
    const known = this.known(token);
    if (known !== undefined) return known;
    const issuer = this.#issuerOf(await import("jose"), token);
    const { payload } = await this.#check(token, issuer);
    const now = this.#clock.now();
    const holder = this.#holderOf(issuer.entry, payload);
    const until = Math.min(now + REMEMBER_MS, (payload.exp ?? 0) * 1000);
    this.#remember(token, { holder, from: now, until });
    return holder;
  }

  /**
   * Verifies a login token or identity assertion for an exchange, and returns its subject. A JSON Web Token that is
   * bound to a key is refused, unless the bearer has proven this key (RFC 7800 section 3, RFC 9449 section 6.1).
   *
   * @throws DeputeError UNAUTHENTICATED with the metadata `fault`
   */
  async subjectOf({ token, kind, thumbprint }: SubjectToken): Promise<ProvenSubject> {
    const issuer = this.#issuerOf(await import("jose"), token, kind === "jwt" ? TYPES : ID_JAG_TYPES);
    const { payload } = await this.#check(token, issuer);
    const { cnf, ...claims } = payload;
    const assertion = kind === "id-jag" ? assertionOf(issuer.entry, claims) : undefined;
    const isBound = cnf === undefined || (isObject(cnf) && cnf.jkt === thumbprint);
    if (!isBound) throw identityRefused("other_key");
    const holder = this.#holderOf(issuer.entry, claims);
    const subject = { issuer: issuer.entry.issuer, subject: claims.sub ?? "", holder };
    return assertion === undefined ? subject : { ...subject, assertion };
  }

  #issuerOf(
    { decodeJwt, decodeProtectedHeader, errors }: Jose,
    token: string,
    types: ReadonlySet<string> = TYPES,
  ): TrustedIssuer {
    if (token.length > MAX_TOKEN) throw identityRefused("malformed");
    let issuer: string | undefined;
    try {
      const { typ } = decodeProtectedHeader(token);
      if (!types.has(String(typ ?? "").toLowerCase())) throw identityRefused("type");
      ({ iss: issuer } = decodeJwt(token));
    } catch (error) {
      throw error instanceof TypeError || error instanceof errors.JOSEError
        ? identityRefused("malformed", error)
        : error;
    }
    const found = this.#issuers.get(issuer ?? "");
    if (found === undefined) throw identityRefused("issuer");
    return found;
  }

  async #check(token: string, { entry, keys }: TrustedIssuer) {
    const { errors, jwtVerify } = await import("jose");
    const skewSeconds = entry.clockSkewSeconds ?? DEFAULT_SKEW_SECONDS;
    try {
      return await jwtVerify(token, keys.find, {
        issuer: entry.issuer,
        audience: [...entry.audiences],
        algorithms: [...(entry.algorithms ?? DEFAULT_ALGORITHMS)],
        clockTolerance: skewSeconds,
        currentDate: new Date(this.#clock.now()),
        requiredClaims: ["iss", "aud", "sub", "exp"],
      });
    } catch (error) {
      throw identityRefused(faultOf(error, errors), error);
    }
  }

  #holderOf(
    { identities, clockSkewSeconds = DEFAULT_SKEW_SECONDS }: IssuerEntry,
    claims: JWTPayload,
  ): IdentityHolder {
    const { sub, iat } = claims;
    if (typeof sub !== "string" || sub === "") throw identityRefused("claim");
    if (typeof iat === "number" && iat > this.#clock.now() / 1000 + clockSkewSeconds)
      throw identityRefused("not_yet_valid");
    // By the claim `cnf`, the issuer requires a proof of the bearer's key. A Bearer credential has no such proof, so
    // the login token is refused. (RFC 7800, RFC 9449)
    if (claims.cnf !== undefined) throw identityRefused("sender_constrained");
    const holder = holderOfClaims(identities, sub, claims);
    if (holder === undefined) throw identityRefused("not_mapped");
    return holder;
  }

  #remember(token: string, verified: Verified): void {
    const digest = digestOf(token);
    this.#verified.delete(digest);
    if (this.#verified.size >= MAX_VERIFIED) {
      const oldest = this.#verified.keys().next().value;
      if (oldest !== undefined) this.#verified.delete(oldest);
    }
    this.#verified.set(digest, verified);
  }
}

function faultOf(error: unknown, errors: Jose["errors"]): IdentityFault {
  if (error instanceof KeysUnavailable) return "issuer_unavailable";
  if (error instanceof errors.JWTExpired) return "expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "aud" && error.reason === "check_failed") return "audience";
    return error.claim === "nbf" && error.reason === "check_failed" ? "not_yet_valid" : "claim";
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return "algorithm";
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return "key";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "signature";
  return "malformed";
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
