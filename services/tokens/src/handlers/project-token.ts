import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  ProjectTokenRequest,
  ProjectTokenResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { DeputeError, ErrorReason, encodeBase64Url, randomBytes, toTimestamp } from "@depute/core";
import { type DenialReason, type SignedJSONToken, thumbprint, type VerifiedBlock } from "@depute/dct";
import { callerOf } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { bindingDenial } from "../rules/bindings.ts";
import { linksOf } from "../rules/delegations.ts";
import { refusedToken } from "../rules/denials.ts";
import { spanMs, toSerialized } from "../rules/documents.ts";
import { projectedClaims } from "../rules/projection.ts";
import { budgetDenial } from "../rules/spend.ts";
import { readChain } from "../store/delegation-rows.ts";

/** Number of random bytes in the id of a projection. */
const ID_BYTES = 16;

/**
 * Makes a projection of a valid chain: a short-lived JSON Web Token, for a resource server that supports only OAuth.
 * The request contains a proof that the caller has the holder's key.
 */
export async function projectToken(
  tokens: TokensContext,
  request: ProjectTokenRequest,
  context: HandlerContext,
): Promise<MessageInitShape<typeof ProjectTokenResponseSchema>> {
  const { engine, chains, clock, audit, jwtKeys } = tokens;
  const input = toSerialized(request.token);
  const holder = await provenHolder(tokens, request.proof, input.token, context);
  const checked = await chains.check(input);
  if (!checked.ok) throw refusedToken(checked.denial);
  const denial = await limitDenial(tokens, checked.blocks, request.audience);
  if (denial !== undefined) throw refusedToken(denial);
  const onBehalfOf = await subjectOf(tokens, checked.token);
  const { scope, blocks } = checked;
  const claims = projectedClaims(
    {
      ...{ issuer: tokens.publicUrl(), audience: request.audience },
      delegatees: blocks.map(({ delegatee }) => delegatee),
      thumbprint: thumbprint(engine, holder),
      capabilities: scope.capabilities,
      delegationId: scope.delegationId,
      expiresAt: scope.expiresAt,
      jti: encodeBase64Url(randomBytes(ID_BYTES)),
      ...(onBehalfOf !== undefined && { onBehalfOf }),
    },
    spanMs(request.lifetime),
    clock.now(),
  );
  audit.assertRoom();
  const jwt = await jwtKeys.sign(claims);
  // A revocation may have arrived since the check at the start.
  const late = chains.finalDenial(checked.token, blocks);
  if (late !== undefined) throw refusedToken(late);
  audit.add({
    ...{ kind: "project", caller: holder, principal: holder, decision: "allowed", reason: "" },
    blocks: blocks.map(({ revocationId }) => revocationId),
  });
  return {
    jwt,
    expireTime: toTimestamp(claims.exp * 1000),
    lifetime: durationFromMs((claims.exp - claims.iat) * 1000),
  };
}

/**
 * Verifies the holder proof, and returns the principal that it proves.
 *
 * @throws DeputeError UNAUTHENTICATED with the metadata `denial`; LIMIT_EXCEEDED, SHUTTING_DOWN as
 * TokenVerifier.verifyProof
 */
async function provenHolder(
  { tokenVerifier }: TokensContext,
  jwt: string,
  token: string,
  context: HandlerContext,
): Promise<string> {
  const { htm: method, htu: target } = callerOf(context);
  const proof = create(HolderProofSchema, { jwt, method, target });
  const result = await tokenVerifier.verifyProof(proof, token, "");
  if (result.ok) return result.principal;
  throw new DeputeError(ErrorReason.UNAUTHENTICATED, `the holder proof is not valid: ${result.denial.type}`, {
    metadata: { denial: result.denial.type },
  });
}

/**
 * Returns the denial if the blocks' recorded limits do not allow a projection; undefined otherwise. A chain with a
 * single-use block has no projection, because a resource server outside the platform cannot count the uses of the
 * block.
 */
async function limitDenial(
  { notes }: TokensContext,
  blocks: readonly VerifiedBlock[],
  audience: string,
): Promise<DenialReason | undefined> {
  const recorded = await notes.read(blocks.map(({ revocationId }) => revocationId));
  if (recorded === undefined) return undefined;
  if (recorded.singleUse.length > 0) {
    return { type: "capability_not_granted", detail: "a chain with a single-use block has no projection" };
  }
  const levels = blocks.map(({ maxBudgetMicrocents }, i) => ({
    maxBudgetMicrocents,
    counted: recorded.counted[i] ?? Number.MAX_SAFE_INTEGER,
  }));
  const isCounted = recorded.counted.some((amount) => amount > 0);
  return (
    bindingDenial(recorded.bindings, { target: audience, tenant: "" }) ??
    (isCounted ? budgetDenial(levels) : undefined)
  );
}

/** Returns the recorded subject on whose behalf the platform minted the root block; undefined if none is recorded. */
async function subjectOf({ engine, store }: TokensContext, token: SignedJSONToken) {
  const chainId = linksOf(engine, token)[0]?.chainId ?? "";
  const [root] = await store.read((tx) => readChain(tx, chainId));
  if (root === undefined || root.subjectIssuer === "") return undefined;
  return { issuer: root.subjectIssuer, subject: root.subjectId, principal: root.subjectPrincipal };
}
