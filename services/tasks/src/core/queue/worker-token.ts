import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { denialWord, reasonOf, tokenDenied } from "@depute/service";
import type { Dependencies } from "../dependencies.ts";

/** The worker token, and the requirements that the tokens service checks. */
export interface TokenQuestion {
  readonly token: string;
  readonly contractId: string;
  /** The capabilities that the token must grant, each as `namespace:action`. */
  readonly requiredCapabilities: readonly string[];
}

/** A token whose chain is valid now. */
export interface SoundToken {
  /** The principal that may use the token. */
  readonly delegatee: string;
  /** The id of the last delegation of the chain. */
  readonly delegationId: string;
  readonly revocationIds: readonly string[];
}

/** The denials that are final: a revoked or expired token never becomes valid again. */
const FINAL_DENIALS = new Set([denialWord(DenialType.REVOKED), denialWord(DenialType.EXPIRED)]);

/**
 * Checks a worker token with the tokens service. Returns the token if it is valid, is bound to the contract, and grants
 * the required capabilities.
 *
 * @throws DeputeError TOKEN_DENIED, DEPENDENCY_UNAVAILABLE
 */
export async function inspectToken(
  tokens: Dependencies["tokens"],
  { token, contractId, requiredCapabilities }: TokenQuestion,
  options: CallOptions,
): Promise<SoundToken> {
  const serialized = create(SerializedDCTSchema, { token, format: "delegateos-sjt-v1" });
  const question = { token: serialized, contractId, requiredCapabilities: [...requiredCapabilities] };
  const answer = await tokens.inspectToken(question, options).catch((error: unknown) => {
    const reason = reasonOf(error);
    if (reason !== ErrorReason.INVALID_REQUEST && reason !== ErrorReason.TOKEN_MALFORMED) throw error;
    throw deniedAs(denialWord(DenialType.MALFORMED_TOKEN), error);
  });
  if (answer.result.case !== "scope") throw tokenDenied(answer.result.value);
  const delegationId = answer.blocks.at(-1)?.delegationId ?? "";
  if (delegationId === "") throw deniedAs(denialWord(DenialType.MALFORMED_TOKEN), undefined);
  return {
    delegatee: answer.delegatee,
    delegationId,
    revocationIds: answer.blocks.map((block) => block.revocationId),
  };
}

/** Returns the error for a token whose delegatee is not the task's delegate. */
export function notTheDelegates(): DeputeError {
  return deniedAs("delegatee_mismatch", undefined);
}

/** Whether the denial of a token is final, because the token was revoked or has expired. */
export function isFinalDenial(error: unknown): error is DeputeError {
  return (
    error instanceof DeputeError &&
    error.reason === ErrorReason.TOKEN_DENIED &&
    FINAL_DENIALS.has(error.metadata.denial ?? "")
  );
}

function deniedAs(denial: string, cause: unknown): DeputeError {
  return new DeputeError(ErrorReason.TOKEN_DENIED, `the worker's token is denied: ${denial}`, {
    metadata: { denial },
    cause,
  });
}
