import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { DelegateosMemberSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import { decodeValid } from "@depute/wire";
import type { Presented, Proof } from "./authoriser.ts";
import { denialOf } from "./rules/refusal.ts";

/** A token, and how its holder proves to be the holder. */
export interface Presentation {
  readonly token: string;
  /** The contract that is executed; empty for no matter. */
  readonly contractId: string;
  /** A proof for one call with these arguments; undefined where there is none (any more). */
  prove(args: unknown): Promise<Proof | undefined>;
}

/**
 * The token in a `_delegateos` member (DelegateOS 11.1). Its proof counts once.
 *
 * @param audience what the proof has to name as its target; its method is `MCP`
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

/** A token with at most one proof, which its sender made for the call that it came with. */
export function once(token: string, contractId: string, proof: Proof | undefined): Presentation {
  let left = proof;
  return {
    token,
    contractId,
    async prove() {
      const taken = left;
      left = undefined;
      return taken;
    },
  };
}

/** What is shown to the verifier for one call. */
export async function present(presentation: Presentation, args: unknown): Promise<Presented> {
  const { token, contractId } = presentation;
  const proof = await presentation.prove(args);
  return { token, contractId, ...(proof === undefined ? {} : { proof }) };
}
