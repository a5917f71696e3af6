import type { AuthorizedScope, DenialReason } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { Right } from "./rules/visible.ts";

/** A token, and the values that the same request presented with it. */
export interface Presented {
  readonly token: string;
  /** The proof that the presenter holds the token's key (RFC 9449); absent if the request had none. */
  readonly proof?: Proof;
  /** The id of the contract under which the call is made; empty for none. */
  readonly contractId: string;
}

/** A holder's proof, and the values that the proof must name. */
export interface Proof {
  readonly jwt: string;
  readonly method: string;
  readonly target: string;
}

/** A decision about the authority of one call. */
export type Verdict =
  | {
      readonly ok: true;
      readonly principal: string;
      readonly scope: AuthorizedScope;
      /** The revocation ids of the token's blocks, beginning with the authority block. */
      readonly blocks: readonly string[];
    }
  | { readonly ok: false; readonly denial: DenialReason };

/** The token under which an amount is spent, and the revocation ids of its blocks, beginning with the authority block. */
export interface Payer {
  readonly token: string;
  readonly blocks: readonly string[];
}

/**
 * The result of a reservation: its id and the remaining budget of the token in microcents, or the reason why the tokens
 * service refused the reservation.
 */
export type Reserved =
  | { readonly ok: true; readonly reservationId: string; readonly remainingMicrocents: number }
  | { readonly ok: false; readonly denial: DenialReason };

/**
 * The capabilities that a token grants. They serve to filter lists, and do not prove that the presenter holds the
 * token.
 */
export type Grants =
  | {
      readonly ok: true;
      readonly capabilities: readonly Right[];
      /** The principal that may use the token: its last delegatee. */
      readonly holder: string;
    }
  | { readonly ok: false; readonly denial: DenialReason };

/** Reserves and charges the costs of calls. Every method throws if the tokens service is unavailable. */
export interface Spender {
  /**
   * Reserves an amount on every block of the token, in microcents, at least 1. A repeated request id does not reserve
   * again.
   */
  reserve(payer: Payer, microcents: number, requestId: string): Promise<Reserved>;
  /**
   * Charges an amount in microcents of a reservation, or the whole reservation if the amount is undefined.
   *
   * @returns the charged amount in microcents
   */
  commit(reservationId: string, microcents: number | undefined): Promise<number>;
  /** Cancels a reservation without a charge. */
  release(reservationId: string): Promise<void>;
}

/**
 * Asks the tokens service, in this process or a remote one, for decisions. Every method throws if the service is
 * unavailable.
 */
export interface Authoriser extends Spender {
  /**
   * Checks in one call whether the token grants its holder all of these capabilities now. A valid proof then counts as
   * used.
   *
   * @param name the tool that is called, or the method of any other request
   */
  verify(
    presented: Presented,
    rights: readonly Right[],
    argumentsDigest: string,
    name: string,
  ): Promise<Verdict>;
  /** Reads the capabilities that a token grants. */
  grants(token: string): Promise<Grants>;
  /**
   * Whether the manifest of the key's agent allows the tool (CAP `mcp_bindings`). True if the key has no registered
   * agent, or the agent has no manifest.
   */
  mayUse(principal: string, serverId: string, tool: string): Promise<boolean>;
}
