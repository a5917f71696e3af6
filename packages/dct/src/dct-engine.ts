import { type AttenuateOptions, type AttenuateParams, attenuateToken } from "./attenuate.ts";
import type { VerificationContext } from "./context.ts";
import { type CreateOptions, type CreateParams, createToken } from "./create.ts";
import { type DenialReason, deny, TokenError } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { revocationIds } from "./payload.ts";
import { parseToken, readToken, serialiseToken, type TokenInput } from "./serialise.ts";
import { DEFAULT_RULES } from "./structure.ts";
import { type Keypair, type SerializedDCT, type SignedJSONToken, SJT_FORMAT } from "./types.ts";
import { type VerifyOptions, type VerifyResult, verifyToken } from "./verify.ts";

/**
 * An engine for one token format (DelegateOS 14.4). Another format needs only another implementation of this
 * interface, and no change in its users. Functions that create tokens throw TokenError; functions that verify tokens
 * never throw.
 */
export interface DCTEngine {
  /** The `format` of the engine's serialised tokens. */
  readonly format: string;
  create(params: CreateParams, issuer: Keypair, options?: CreateOptions): SerializedDCT;
  attenuate(
    token: TokenInput,
    params: AttenuateParams,
    attenuator: Keypair,
    options?: AttenuateOptions,
  ): SerializedDCT;
  parse(token: unknown): { ok: true; token: SignedJSONToken } | { ok: false; denial: DenialReason };
  /**
   * Returns the revocation id of each block, beginning with the authority block. Throws TokenError for an invalid
   * token.
   */
  revocationIds(token: TokenInput): string[];
  verify(token: TokenInput, ctx: VerificationContext): VerifyResult;
}

/**
 * Returns the engine of `delegateos-sjt-v1`, the signed JSON token.
 *
 * @param how options for all verifications
 */
export function createSjtEngine(engine: CryptoEngine, how: VerifyOptions = {}): DCTEngine {
  return {
    format: SJT_FORMAT,
    create: (params, issuer, options) =>
      serialiseToken(createToken(engine, params, issuer, options), options?.rules),
    attenuate(token, params, attenuator, options) {
      const parsed = readToken(token, options?.rules ?? DEFAULT_RULES);
      return serialiseToken(attenuateToken(engine, parsed, params, attenuator, options), options?.rules);
    },
    parse: (token) => parseToken(token),
    revocationIds: (token) => revocationIds(engine, readToken(token, DEFAULT_RULES)),
    verify: (token, ctx) => verifyToken(engine, token, ctx, how),
  };
}

/**
 * Combines several formats in one engine: each token goes to the engine of its format. The first engine creates new
 * tokens, and reads texts without a format. Throws RangeError for two engines of one format.
 */
export function combineEngines(first: DCTEngine, ...others: readonly DCTEngine[]): DCTEngine {
  const engines = new Map([first, ...others].map((engine) => [engine.format, engine]));
  if (engines.size <= others.length) throw new RangeError("two engines of one format");
  const engineOf = (token: unknown): DCTEngine => {
    const format =
      typeof token === "object" && token !== null ? (token as SerializedDCT).format : first.format;
    return engines.get(format) ?? deny("malformed_token", `format: not ${[...engines.keys()].join(" or ")}`);
  };
  return {
    format: first.format,
    create: (params, issuer, options) => first.create(params, issuer, options),
    attenuate: (token, ...rest) => engineOf(token).attenuate(token, ...rest),
    parse: (token) => resultOrDenial(() => engineOf(token).parse(token)),
    revocationIds: (token) => engineOf(token).revocationIds(token),
    verify: (token, ctx) => resultOrDenial(() => engineOf(token).verify(token, ctx)),
  };
}

function resultOrDenial<T>(judge: () => T): T | { ok: false; denial: DenialReason } {
  try {
    return judge();
  } catch (error) {
    if (error instanceof TokenError) return { ok: false, denial: error.denial };
    return { ok: false, denial: { type: "malformed_token", detail: "unreadable" } };
  }
}
