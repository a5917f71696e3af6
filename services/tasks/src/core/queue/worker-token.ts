import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { denialWord, reasonOf, tokenDenied } from "@depute/service";
import type { Dependencies } from "../dependencies.ts";

/** What is asked of a worker's token. */
export interface TokenQuestion {
  readonly token: string;
  readonly contractId: string;
  /** Each `namespace:action`. */
  readonly requiredCapabilities: readonly string[];
}

/** A token whose chain is sound now. */
export interface SoundToken {
  /** Who may use it. */
  readonly delegatee: string;
  /** The last delegation of its chain. */
  readonly delegationId: string;
  readonly revocationIds: readonly string[];
}

/** The denials after which nothing can be done under a token any more. */
const FINAL_DENIALS = new Set([denialWord(DenialType.REVOKED), denialWord(DenialType.EXPIRED)]);

/**
 * Asks the tokens service whether a token is sound, bound to the contract, and covers what the contract requires.
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

/** The refusal of a token that is not the delegate's. */
export function notTheDelegates(): DeputeError {
  return deniedAs("delegatee_mismatch", undefined);
}

/** Whether the refusal of a token is for good: it was revoked, or its time has passed. */
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
