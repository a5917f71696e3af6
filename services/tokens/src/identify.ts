import type { HandlerContext } from "@connectrpc/connect";
import { type Identity, identityOf } from "@depute/service";
import type { Judge } from "./judge.ts";
import { toVerdict } from "./rules/denials.ts";

/** Says who calls this service, by the code that answers VerifyProof: a call to itself would need a caller again. */
export function createIdentify(judge: Judge): (context: HandlerContext) => Promise<Identity> {
  return (context) =>
    identityOf(context, async ({ proof, token }) =>
      toVerdict(await judge.verifyProof(proof, token?.token, "")),
    );
}
