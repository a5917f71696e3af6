import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type MintTokenRequest,
  MintTokenRequestSchema,
  type MintTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { encodeBase64Url, invalid, requestIdReused } from "@depute/core";
import {
  type Authority,
  attachAuthoritySignature,
  authoritySigningInput,
  buildAuthority,
  DEFAULT_LIFETIME_MS,
  isAdmissible,
  type Keypair,
  serialiseToken,
  TokenError,
} from "@depute/dct";
import type { Identity } from "@depute/service";
import type { ReadTx, RequestKey } from "@depute/store";
import { assertMinter, type TokensContext } from "../context.ts";
import { linksOf } from "../rules/delegations.ts";
import { refusedMint } from "../rules/denials.ts";
import { bindingOf, blocksOf, fromSerialized, spanMs } from "../rules/documents.ts";
import { mintParams } from "../rules/mint.ts";
import type { Subject } from "../store/delegation-rows.ts";
import { findMint, insertMint } from "../store/mint-requests.ts";

/**
 * Mints a root token (DelegateOS 3.3). The store keeps only the unsigned authority block, so it never contains a usable
 * token. For a replay, the service signs that block again. Ed25519 is deterministic, so the signature is the same.
 */
export async function mintToken(
  context: TokensContext,
  request: MintTokenRequest,
  identity: Identity,
): Promise<MessageInitShape<typeof MintTokenResponseSchema>> {
  assertMinter(context, identity, "mint");
  return mintAs(context, request, identity, context.roots);
}

/** The keys that may sign a new token. */
export interface Issuers {
  /** Returns the key that signs new tokens, as a transaction sees it. */
  currentIn(tx: ReadTx): Promise<Keypair>;
  /**
   * Returns the key of a principal, as a transaction sees it, to repeat a signature. Returns undefined if the issuer does
   * not have this key.
   *
   * @throws DeputeError KEY_NOT_USABLE
   */
  signerIn(tx: ReadTx, principal: string): Promise<Keypair | undefined>;
}

/** Returns one key as the only issuer. */
export function signedBy(keypair: Keypair): Issuers {
  return {
    currentIn: async () => keypair,
    signerIn: async (_, principal) => (principal === keypair.principal.id ? keypair : undefined),
  };
}

/**
 * Mints a token like mintToken, but signs with a key of `issuers` and does not check the caller's permission.
 *
 * @param subject the subject of the exchanged JWT (RFC 8693); undefined if the call is not a token exchange
 */
export async function mintAs(
  context: TokensContext,
  request: MintTokenRequest,
  { principal: caller, organization }: Identity,
  issuers: Issuers,
  subject?: Subject,
): Promise<MessageInitShape<typeof MintTokenResponseSchema>> {
  const { engine, store, clock, audit } = context;
  if (!isAdmissible(engine, request.delegatee)) {
    throw invalid("delegatee", "is not an Ed25519 public key of prime order");
  }
  assertLifetime(context, request);
  const digest = encodeBase64Url(engine.blake2b256(toBinary(MintTokenRequestSchema, request)));
  const key: RequestKey = { caller, requestId: request.requestId, digest };
  const { response, blocks } = await store.write(async (tx) => {
    const minted = await findMint(tx, key);
    if (minted !== undefined) {
      // A rotation may have replaced the key that signed the token.
      const signer = await issuers.signerIn(tx, minted.issuer);
      if (signer === undefined) throw requestIdReused(key.requestId, "issuer");
      return signToken(context, minted, signer);
    }
    const now = clock.now();
    const issuer = await issuers.currentIn(tx);
    const authority = checked(() =>
      buildAuthority(issuer.principal.id, mintParams(request, now), {
        now,
        maxLifetimeMs: context.maxLifetimeMs,
      }),
    );
    const answer = signToken(context, authority, issuer);
    await insertMint(tx, key, authority, now);
    await context.delegations.record(tx, linksOf(engine, answer.minted), { organization, subject });
    await context.notes.bind(tx, answer.blocks[0]?.revocationId ?? "", bindingOf(request.binding));
    await audit.write(tx, {
      kind: "mint",
      caller,
      principal: authority.delegatee,
      decision: "allowed",
      reason: "",
      blocks: answer.blocks.map(({ revocationId }) => revocationId),
    });
    return answer;
  });
  return { ...response, revocationId: blocks[0]?.revocationId ?? "" };
}

/** Signs an authority block as its issuer and returns the token. Equal blocks give equal tokens. */
function signToken({ engine }: TokensContext, authority: Authority, issuer: Keypair) {
  const signature = engine.sign(authoritySigningInput(engine, authority), issuer.privateKey);
  const token = checked(() => attachAuthoritySignature(engine, authority, signature));
  const serialised = checked(() => serialiseToken(token));
  const response = { token: fromSerialized(serialised), delegationId: authority.delegationId };
  return { response, blocks: blocksOf(engine, token), minted: token };
}

/**
 * Requires a lifetime within the bounds of the settings.
 *
 * @throws DeputeError INVALID_REQUEST
 */
function assertLifetime({ minLifetimeMs, maxLifetimeMs }: TokensContext, request: MintTokenRequest): void {
  const lifetimeMs = spanMs(request.lifetime) || DEFAULT_LIFETIME_MS;
  if (lifetimeMs >= minLifetimeMs && lifetimeMs <= maxLifetimeMs) return;
  throw invalid("lifetime", `must be ${minLifetimeMs / 1000} to ${maxLifetimeMs / 1000} seconds`);
}

/**
 * Runs `make`, which creates a token, and returns its result. Converts a TokenError to the DeputeError of a refused
 * mint.
 */
function checked<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw error instanceof TokenError ? refusedMint(error) : error;
  }
}
