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
 * Mints a token for the key of a holder proof, in exchange for a token of an issuer (RFC 8693). Verifies the proof
 * first, so a caller with a used proof does not learn whether the issuer's token is valid.
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
  // A proof serves only once, so its digest identifies the exchange.
  const requestId = encodeBase64Url(engine.sha256(new TextEncoder().encode(request.proof)));
  const mint = mintOfExchange(request, { bounds, isMinter }, { delegatee, requestId, maxLifetimeMs });
  // Comes after the check of the scope, so a request with a refused scope does not use up the assertion.
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
 * @throws DeputeError UNAUTHENTICATED with the metadata `denial`
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
    `the holder proof does not count: ${type} ${detail}`.trim(),
    {
      metadata: { denial: type },
    },
  );
}
