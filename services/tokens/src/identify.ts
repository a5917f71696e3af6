import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/verification_pb";
import { callerDenied, callerOf, type Identity } from "@depute/service";
import type { Judge } from "./judge.ts";
import { toDenialReason } from "./rules/denials.ts";

/** Says who calls this service, by the code that answers VerifyProof. */
export function createIdentify(judge: Judge): (context: HandlerContext) => Promise<Identity> {
  return async (context) => {
    const caller = callerOf(context);
    const { kind, principal, token, proof = "", htm, htu } = caller;
    if (kind !== "bound") return { principal, local: kind === "local" };
    const presented = create(HolderProofSchema, { jwt: proof, method: htm, target: htu });
    const result = await judge.verifyProof(presented, token, "");
    if (result.ok) return { principal: result.principal, local: false };
    throw callerDenied(caller, toDenialReason(result.denial));
  };
}
