import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import {
  type HolderSessionService,
  OpenHolderSessionResponseSchema,
} from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { toTimestamp } from "@depute/core";
import { callerOf, tokenDenied } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { toDenialReason } from "../rules/denials.ts";
import { bytesOfText, spanMs } from "../rules/documents.ts";

/**
 * Handles the calls of HolderSessionService. Their only credentials are the holder proof and, if the call presents one,
 * a token.
 */
export function holderSessionService({
  sessions,
}: TokensContext): Required<ServiceImpl<typeof HolderSessionService>> {
  return {
    async openHolderSession({ proof, token, audience, lifetime }, context) {
      const presented = presentedIn(context, proof, token);
      const opened = await sessions.open(presented.proof, presented.token, {
        audience,
        ...(lifetime !== undefined && spanMs(lifetime) > 0 && { lifetimeMs: spanMs(lifetime) }),
      });
      if (!opened.ok) {
        const value = toDenialReason(opened.denial);
        return create(OpenHolderSessionResponseSchema, { result: { case: "denial", value } });
      }
      const { id, signer, expiresAt, verifierKey, signature } = opened.grant;
      const value = {
        ...{ id, signer: signer ?? "", expireTime: toTimestamp(expiresAt) },
        verifierKey: bytesOfText(verifierKey),
        signature: bytesOfText(signature),
      };
      return create(OpenHolderSessionResponseSchema, { result: { case: "grant", value } });
    },

    async closeHolderSession({ proof, token }, context) {
      const presented = presentedIn(context, proof, token);
      const closed = await sessions.close(presented.proof, presented.token);
      if (closed.ok) return {};
      throw tokenDenied(toDenialReason(closed.denial));
    },
  };
}

/**
 * Returns the proof and the token of a request: each from the body or, if the body has none, from the headers. The
 * proof must name the method and address of the call that reached the platform.
 */
function presentedIn(context: HandlerContext, proof: string, token: SerializedDCT | undefined) {
  const caller = callerOf(context);
  return {
    proof: create(HolderProofSchema, {
      jwt: proof === "" ? (caller.proof ?? "") : proof,
      method: caller.htm,
      target: caller.htu,
    }),
    token: token?.token ?? caller.token,
  };
}
