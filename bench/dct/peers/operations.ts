/** The operations that are compared, each at 0, 2 and 5 attenuations. */
export const LINKS = [0, 2, 5] as const;

/**
 * What one implementation does. Each function returns the operation for tokens with a number of attenuations.
 * `attenuate` adds one further block to a token in memory. Operations that write a token return its text.
 */
export interface Operations {
  readonly mint: () => () => void;
  readonly attenuate: (links: number) => () => void;
  /** Verifies the text of a token that the implementation has not seen before. */
  readonly cold: (links: number) => () => void;
  /**
   * Verifies a token that the implementation has verified before. The implementation may use everything that it cached.
   */
  readonly warm: (links: number) => () => void;
}

export const PEERS = ["raw Ed25519", "biscuit-wasm", "literal stack", "Depute"] as const;
export type Peer = (typeof PEERS)[number];
export type Operation = keyof Operations;
