import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import type { DeputeError } from "@depute/core";
import { parseToken } from "@depute/dct";
import { type Identity, tokenDenied } from "@depute/service";
import { callOptions, type TasksContext } from "./context.ts";

/** Who a caller says it is, before its proof is used up for the right that the call needs. */
export interface Claim {
  readonly principal: string;
  /** Who it is known to be; absent for the holder of a token, whose proof is kept for the right. */
  readonly identity?: Identity;
  /**
   * Uses the proof up to know that the claim is true, for a call that ends without asking for a right.
   *
   * @returns the principal
   * @throws DeputeError TOKEN_DENIED, UNAUTHENTICATED, DEPENDENCY_UNAVAILABLE
   */
  prove(): Promise<string>;
}

/**
 * Reads whom a token is for, and asks who calls where there is none. Nothing that depends on a claim may reach the caller
 * until it is proved.
 *
 * @throws DeputeError TOKEN_DENIED, UNAUTHENTICATED, DEPENDENCY_UNAVAILABLE
 */
export async function claimOf(tasks: TasksContext, context: HandlerContext): Promise<Claim> {
  const { authority, dependencies } = tasks;
  const text = /^dpop +([!-~]+) *$/i.exec(context.requestHeader.get("authorization") ?? "")?.[1];
  if (text === undefined) {
    const identity = await authority.identify(context);
    return { principal: identity.principal, identity, prove: async () => identity.principal };
  }
  const token = create(SerializedDCTSchema, { token: text, format: "delegateos-sjt-v1" });
  const read = parseToken({ token: text, format: "delegateos-sjt-v1" });
  if (!read.ok) {
    const { type, detail } = read.denial;
    throw denied(
      type === "token_too_large" ? DenialType.TOKEN_TOO_LARGE : DenialType.MALFORMED_TOKEN,
      detail,
    );
  }
  const holder = (read.token.attenuations.at(-1) ?? read.token.authority).delegatee;
  return {
    principal: holder,
    async prove() {
      // A token that anybody made up, or that is somebody else's, must not show what its holder would see.
      const { result } = await dependencies.tokens.inspectToken({ token }, callOptions(tasks, context));
      if (result.case === "denial") throw tokenDenied(result.value);
      const { principal } = await authority.identify(context);
      if (principal !== holder) throw notTheHolder();
      return principal;
    },
  };
}

/** The refusal of a caller that is not whom its token is for. */
export function notTheHolder(): DeputeError {
  return denied(DenialType.INVALID_PROOF, "jwk");
}

function denied(type: DenialType, detail: string | undefined): DeputeError {
  return tokenDenied(create(DenialReasonSchema, { type, detail: detail ?? "" }));
}
