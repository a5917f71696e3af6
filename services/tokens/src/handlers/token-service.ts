import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type TokenService,
  type VerifyProofResponse,
  VerifyProofResponseSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { toTimestamp } from "@depute/core";
import type { TokensContext } from "../context.ts";
import { type ProofResult, toVerdict } from "../rules/denials.ts";
import { attenuateToken, prepareAttenuation } from "./attenuation.ts";
import { exchangeToken } from "./exchange-token.ts";
import { mintToken } from "./mint-token.ts";
import { projectToken } from "./project-token.ts";
import { inspectToken, recordToken } from "./record-token.ts";

/**
 * Handles the calls of TokenService. If a caller presents credentials, they must be valid, even if the call requires
 * none. ExchangeToken and ProjectToken verify only the proof in the request.
 */
export function tokenService(tokens: TokensContext): Required<ServiceImpl<typeof TokenService>> {
  return {
    async getIssuer(_, context) {
      await tokens.identify(context);
      const { roots } = tokens;
      const retiredRoots = roots.keys.flatMap(({ principal }) => {
        const retireTime = roots.retired(principal);
        return retireTime === undefined ? [] : [{ principal, retireTime: toTimestamp(retireTime) }];
      });
      const { id: principal } = roots.current().principal;
      return { principal, trustedRoots: [...roots.trusted()], retiredRoots };
    },
    async mintToken(request, context) {
      return mintToken(tokens, request, await tokens.identify(context));
    },
    async exchangeToken(request, context) {
      return exchangeToken(tokens, request, context);
    },
    async projectToken(request, context) {
      return projectToken(tokens, request, context);
    },
    async getSigningKeys(_, context) {
      await tokens.identify(context);
      return { jwks: JSON.stringify({ keys: await tokens.jwtKeys.published() }) };
    },
    async recordToken(request, context) {
      return recordToken(tokens, request, await tokens.identify(context));
    },
    async prepareAttenuation(request, context) {
      await tokens.identify(context);
      return prepareAttenuation(tokens, request);
    },
    async attenuateToken(request, context) {
      return attenuateToken(tokens, request, await tokens.identify(context));
    },
    async inspectToken(request, context) {
      return inspectToken(tokens, request, await tokens.identify(context));
    },
    async verifyToken(request, context) {
      const { principal } = await tokens.identify(context);
      return tokens.tokenVerifier.verify(request, principal);
    },
    async verifyProof(request, context) {
      const { principal } = await tokens.identify(context);
      const { proof, token } = request;
      if (proof === undefined)
        return toVerifyProofResponse({ ok: false, denial: { type: "proof_required" } });
      return toVerifyProofResponse(await tokens.tokenVerifier.verifyProof(proof, token?.token, principal));
    },
  };
}

function toVerifyProofResponse(result: ProofResult): VerifyProofResponse {
  return create(VerifyProofResponseSchema, { result: toVerdict(result) });
}
