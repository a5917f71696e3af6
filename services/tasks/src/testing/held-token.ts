import { createToken, generateKeypair, serialiseToken } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { CONTRACT } from "./fakes.ts";

/** Who holds a token that grants the delegation to anybody. */
export const HOLDER = generateKeypair(nativeEngine).principal.id;

/** The holder's token, as it is presented. */
export const HELD_TOKEN = serialiseToken(
  createToken(
    nativeEngine,
    {
      delegatee: HOLDER,
      capabilities: [{ namespace: "depute:tasks", action: "delegate", resource: "**" }],
      contractId: CONTRACT,
      maxBudgetMicrocents: 1,
      maxChainDepth: 1,
    },
    generateKeypair(nativeEngine),
  ),
).token;

/** Call options of one who presents the holder's token, and whose proof says who it is. */
export const presenting = (prover = HOLDER) => ({
  headers: { as: prover, authorization: `DPoP ${HELD_TOKEN}` },
});
