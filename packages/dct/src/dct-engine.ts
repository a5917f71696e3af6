import { type AttenuateOptions, type AttenuateParams, attenuateToken } from "./attenuate.ts";
import type { VerificationContext } from "./context.ts";
import { type CreateOptions, type CreateParams, createToken } from "./create.ts";
import type { DenialReason } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { revocationIds } from "./payload.ts";
import { parseToken, readToken, serialiseToken, type TokenInput } from "./serialise.ts";
import { STRICT_RULES } from "./structure.ts";
import { type Keypair, type SerializedDCT, type SignedJSONToken, SJT_FORMAT } from "./types.ts";
import { type VerifyResult, verifyToken } from "./verify.ts";

/**
 * One token format (DelegateOS 14.4): a second one is a second implementation, and nothing that uses tokens through
 * this interface has to know. Functions that make tokens throw TokenError; those that judge them never throw.
 */
export interface DCTEngine {
  /** What `format` of a serialised token says. */
  readonly format: string;
  create(params: CreateParams, issuer: Keypair, options?: CreateOptions): SerializedDCT;
  attenuate(
    token: TokenInput,
    params: AttenuateParams,
    attenuator: Keypair,
    options?: AttenuateOptions,
  ): SerializedDCT;
  parse(token: unknown): { ok: true; token: SignedJSONToken } | { ok: false; denial: DenialReason };
  /** One for each block, the authority's first. Throws TokenError for what is no token. */
  revocationIds(token: TokenInput): string[];
  verify(token: TokenInput, ctx: VerificationContext): VerifyResult;
}

/** The engine of `delegateos-sjt-v1`, the signed JSON token. */
export function createSjtEngine(engine: CryptoEngine): DCTEngine {
  return {
    format: SJT_FORMAT,
    create: (params, issuer, options) =>
      serialiseToken(createToken(engine, params, issuer, options), options?.rules),
    attenuate(token, params, attenuator, options) {
      const parsed = readToken(token, options?.rules ?? STRICT_RULES);
      return serialiseToken(attenuateToken(engine, parsed, params, attenuator, options), options?.rules);
    },
    parse: (token) => parseToken(token),
    revocationIds: (token) => revocationIds(engine, readToken(token, STRICT_RULES)),
    verify: (token, ctx) => verifyToken(engine, token, ctx),
  };
}
