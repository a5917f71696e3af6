import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { DelegateosMemberSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import { decodeValid } from "@depute/wire";
import type { Presented, Proof } from "./authoriser.ts";
import { denialOf } from "./rules/refusal.ts";

/** A token, and a function that proves possession of its key. */
export interface Presentation {
  readonly token: string;
  /** The id of the contract under which the call is made; empty for none. */
  readonly contractId: string;
  /**
   * Returns a proof for one call with these arguments. Returns undefined if the presenter sent no proof, or if its only
   * proof has been used.
   */
  prove(args: unknown): Promise<Proof | undefined>;
  /**
   * Called when the platform has refused the last proof as invalid. Returns true if the proof was made in a holder
   * session, which then counts as lost; the next proof does not use that session. Absent if the presenter has no holder
   * sessions.
   */
  loseSession?(): boolean;
}

/**
 * Reads the token in a `_delegateos` member (DelegateOS 11.1). The proof in the member is valid only once.
 *
 * @param audience the target that the proof must name; the proof's method is `MCP`
 * @throws Refusal malformed_token
 */
export function fromMember(member: unknown, audience: string): Presentation {
  const read = decodeValid(DelegateosMemberSchema, member);
  if (!read.ok) {
    const { path, message } = read.error;
    throw denialOf({ type: DenialType.MALFORMED_TOKEN, detail: `_delegateos${path}: ${message}` });
  }
  const { dct: token, contractId, proof } = read.message;
  const own = proof === undefined ? undefined : { jwt: proof, method: "MCP", target: audience };
  return once(token, contractId, own);
}

/**
 * Presents a token with at most one proof. The sender made the proof for a single call, so only the first call of
 * `prove` returns it.
 */
export function once(token: string, contractId: string, proof: Proof | undefined): Presentation {
  let unusedProof = proof;
  return {
    token,
    contractId,
    async prove() {
      const callProof = unusedProof;
      unusedProof = undefined;
      return callProof;
    },
  };
}

/** Returns the token, with the proof for one call if there is one, in the form that `Authoriser.verify` checks. */
export async function createPresented(presentation: Presentation, args: unknown): Promise<Presented> {
  const { token, contractId } = presentation;
  const proof = await presentation.prove(args);
  return { token, contractId, ...(proof === undefined ? {} : { proof }) };
}
