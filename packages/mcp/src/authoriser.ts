import type { AuthorizedScope, DenialReason } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { Right } from "./rules/visible.ts";

/** A token as it came with a request. */
export interface Presented {
  readonly token: string;
  /** The proof that the presenter holds the token's key (RFC 9449); absent where none came along. */
  readonly proof?: Proof;
  /** The contract that is executed; empty for no matter. */
  readonly contractId: string;
}

/** A holder's proof, and what it has to name. */
export interface Proof {
  readonly jwt: string;
  readonly method: string;
  readonly target: string;
}

/** A decision about one call. */
export type Verdict =
  | { readonly ok: true; readonly principal: string; readonly scope: AuthorizedScope }
  | { readonly ok: false; readonly denial: DenialReason };

/** A reservation that was made, or why none was. */
export type Reserved =
  | { readonly ok: true; readonly reservationId: string }
  | { readonly ok: false; readonly denial: DenialReason };

/** What a token grants, without a look at who presents it; for lists. */
export type Grants =
  | { readonly ok: true; readonly capabilities: readonly Right[] }
  | { readonly ok: false; readonly denial: DenialReason };

/** Who decides: the tokens service, wherever it is. Each of them throws when it cannot be asked. */
export interface Authoriser {
  /** Whether the token's holder may do all of this now, by one call. A genuine proof is used up. */
  verify(presented: Presented, rights: readonly Right[], argumentsDigest: string): Promise<Verdict>;
  /** Sets an amount (microcents, at least 1) aside on every block of the token, once for each request id. */
  reserve(token: string, microcents: number, requestId: string): Promise<Reserved>;
  /** Charges a reservation: an amount in microcents, or all of it. @returns what was charged */
  commit(reservationId: string, microcents: number | undefined): Promise<number>;
  /** Gives a reservation back. */
  release(reservationId: string): Promise<void>;
  /** What the token grants. */
  grants(token: string): Promise<Grants>;
  /**
   * Whether the manifest of the agent that the key belongs to lets it use the tool (CAP `mcp_bindings`); true for a key
   * of no registered agent, and for an agent without a manifest.
   */
  mayUse(principal: string, serverId: string, tool: string): Promise<boolean>;
}
