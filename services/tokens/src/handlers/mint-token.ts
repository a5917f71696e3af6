import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type MintTokenRequest,
  MintTokenRequestSchema,
  type MintTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { canonicalJson, encodeBase64Url, invalid, requestIdReused } from "@depute/core";
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
import { assertMinter, type TokensContext } from "../context.ts";
import { blocksOf } from "../rules/blocks.ts";
import { linksOf } from "../rules/delegations.ts";
import { refusedMint } from "../rules/denials.ts";
import { bindingOf, fromSerialized } from "../rules/documents.ts";
import { mintParams } from "../rules/mint.ts";
import { type MintKey, recallMint, rememberMint } from "../store/mint-requests.ts";

/**
 * Mints a root token (DelegateOS 3.3).
 *
 * To answer a repeated request only the authority is kept, unsigned: Ed25519 gives the same signature again, so the
 * store never holds anything that could be presented.
 */
export async function mintToken(
  context: TokensContext,
  request: MintTokenRequest,
  identity: Identity,
): Promise<MessageInitShape<typeof MintTokenResponseSchema>> {
  assertMinter(context, identity, "mint");
  return mintAs(context, request, identity.principal, context.root);
}

/** As mintToken, signed by a key that its owner may use. */
export async function mintAs(
  context: TokensContext,
  request: MintTokenRequest,
  caller: string,
  issuer: Keypair,
): Promise<MessageInitShape<typeof MintTokenResponseSchema>> {
  const { engine, store, clock, audit } = context;
  if (!isAdmissible(engine, request.delegatee)) {
    throw invalid("delegatee", "is not an Ed25519 public key of prime order");
  }
  assertLifetime(context, request);
  const digest = encodeBase64Url(engine.blake2b256(toBinary(MintTokenRequestSchema, request)));
  const key: MintKey = { caller, requestId: request.requestId, digest };
  const { response, blocks } = await store.write(async (tx) => {
    const minted = await recallMint(tx, key);
    if (minted !== undefined) return signed(context, minted, key, issuer);
    const now = clock.now();
    const authority = checked(() =>
      buildAuthority(issuer.principal.id, mintParams(request, now), {
        now,
        maxLifetimeMs: context.maxLifetimeMs,
      }),
    );
    const answer = signed(context, authority, key, issuer);
    await rememberMint(tx, key, canonicalJson(authority), now);
    await context.delegations.record(tx, linksOf(engine, answer.minted));
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

/** The token of an authority, signed by its issuer. The same authority always gives the same token. */
function signed({ engine }: TokensContext, authority: Authority, key: MintKey, issuer: Keypair) {
  if (authority.issuer !== issuer.principal.id) {
    throw requestIdReused(key.requestId, "issuer");
  }
  const signature = engine.sign(authoritySigningInput(engine, authority), issuer.privateKey);
  const token = checked(() => attachAuthoritySignature(engine, authority, signature));
  const serialised = checked(() => serialiseToken(token));
  const response = { token: fromSerialized(serialised), delegationId: authority.delegationId };
  return { response, blocks: blocksOf(engine, token), minted: token };
}

/** @throws DeputeError INVALID_REQUEST */
function assertLifetime({ minLifetimeMs, maxLifetimeMs }: TokensContext, request: MintTokenRequest): void {
  const lifetimeMs = request.lifetimeSeconds * 1000 || DEFAULT_LIFETIME_MS;
  if (lifetimeMs >= minLifetimeMs && lifetimeMs <= maxLifetimeMs) return;
  throw invalid("lifetime_seconds", `is not ${minLifetimeMs / 1000} to ${maxLifetimeMs / 1000} seconds`);
}

/** Runs what makes a token; its refusals are the request's. */
function checked<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw error instanceof TokenError ? refusedMint(error) : error;
  }
}
