import { createToken, generateKeypair, serialiseToken } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { CONTRACT } from "./fakes.ts";

/** The holder of HELD_TOKEN. */
export const HOLDER = generateKeypair(nativeEngine).principal.id;

/** A serialized token that allows HOLDER to delegate to any agent. */
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

/**
 * Returns the call options of a caller that presents HELD_TOKEN. `prover` is the principal that the caller's proof
 * names.
 */
export const presenting = (prover = HOLDER) => ({
  headers: { as: prover, authorization: `DPoP ${HELD_TOKEN}` },
});
