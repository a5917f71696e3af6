import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import {
  OpenSessionResponseSchema,
  type SessionService,
} from "@depute/contracts/depute/tokens/v1/session_service_pb";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/verification_pb";
import { callerOf, tokenDenied } from "@depute/service";
import type { TokensContext } from "../context.ts";
import { toDenialReason } from "../rules/denials.ts";

/** SessionService. Who calls is what the proof says; there is nobody else to ask. */
export function sessionService({ sessions }: TokensContext): Required<ServiceImpl<typeof SessionService>> {
  return {
    async openSession({ proof, token, audience, lifetimeSeconds }, context) {
      const presented = presentedIn(context, proof, token);
      const opened = await sessions.open(presented.proof, presented.token, {
        audience,
        ...(lifetimeSeconds > 0 && { lifetimeMs: lifetimeSeconds * 1000 }),
      });
      if (!opened.ok) {
        const value = toDenialReason(opened.denial);
        return create(OpenSessionResponseSchema, { result: { case: "denial", value } });
      }
      const { expiresAt, ...grant } = opened.grant;
      const value = { ...grant, expiresAtMs: BigInt(expiresAt) };
      return create(OpenSessionResponseSchema, { result: { case: "grant", value } });
    },

    async closeSession({ proof, token }, context) {
      const presented = presentedIn(context, proof, token);
      const closed = await sessions.close(presented.proof, presented.token);
      if (closed.ok) return {};
      throw tokenDenied(toDenialReason(closed.denial));
    },
  };
}

/** The proof of a request's body or header, and what it has to name: the call as it reached the platform. */
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
