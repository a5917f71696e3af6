import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ExchangeTokenRequest,
  type ExchangeTokenResponseSchema,
  SubjectTokenKind,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { DeputeError, ErrorReason, encodeBase64Url } from "@depute/core";
import { thumbprint } from "@depute/dct";
import { callerOf } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { mintOfExchange } from "../rules/exchange.ts";
import { mintAs } from "./mint-token.ts";

/**
 * Exchanges a JWT of an OpenID Connect issuer for a root token (RFC 8693). The delegatee is the key that made the
 * holder proof. Verifies the proof first, so a caller with a used proof does not learn whether the JWT is valid.
 */
export async function exchangeToken(
  tokens: TokensContext,
  request: ExchangeTokenRequest,
  context: HandlerContext,
): Promise<MessageInitShape<typeof ExchangeTokenResponseSchema>> {
  const { engine, minters, maxLifetimeMs, roots } = tokens;
  const delegatee = await provenKey(tokens, request.proof, context);
  const { issuer, subject, holder, assertion } = await tokens.subjectOf({
    token: request.subjectToken,
    kind: request.subjectTokenKind === SubjectTokenKind.ID_JAG ? "id-jag" : "jwt",
    thumbprint: thumbprint(engine, delegatee),
  });
  const { principal, organization = "", roles = [], mint: bounds } = holder;
  const isMinter = roles.includes("minter") || minters.has(principal);
  // The service accepts a proof only once, so the proof's digest identifies the exchange.
  const requestId = encodeBase64Url(engine.sha256(new TextEncoder().encode(request.proof)));
  const mint = mintOfExchange(request, { bounds, isMinter }, { delegatee, requestId, maxLifetimeMs });
  // The assertion is marked as used only after the check of the requested limits. A refused request can therefore be
  // repeated with the same assertion.
  if (assertion !== undefined) await tokens.usedAssertions.use(assertion);
  const minted = await mintAs(tokens, mint, { principal, organization, local: false }, roots, {
    subjectIssuer: issuer,
    subjectId: subject,
    subjectPrincipal: principal,
  });
  const { capabilities, lifetime } = mint;
  const { token, delegationId = "", revocationId = "" } = minted;
  return {
    ...(token !== undefined && { token }),
    ...{ delegationId, revocationId, delegatee, capabilities },
    ...(lifetime !== undefined && { lifetime }),
  };
}

/**
 * Verifies the holder proof, and returns the principal that it proves.
 *
 * @throws DeputeError UNAUTHENTICATED with the metadata `denial`; LIMIT_EXCEEDED, SHUTTING_DOWN as
 * TokenVerifier.verifyProof
 */
async function provenKey(
  { tokenVerifier }: TokensContext,
  jwt: string,
  context: HandlerContext,
): Promise<string> {
  const { htm: method, htu: target } = callerOf(context);
  const proof = create(HolderProofSchema, { jwt, method, target });
  const result = await tokenVerifier.verifyProof(proof, undefined, "");
  if (result.ok) return result.principal;
  const { type, detail = "" } = result.denial as { type: string; detail?: string };
  throw new DeputeError(
    ErrorReason.UNAUTHENTICATED,
    `the holder proof is not valid: ${type} ${detail}`.trim(),
    {
      metadata: { denial: type },
    },
  );
}
