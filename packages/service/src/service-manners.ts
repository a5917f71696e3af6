import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { ErrorReason } from "@depute/core";

/** What every error of a service carries in google.rpc.ErrorInfo beside its own metadata, by its reason. */
export type ErrorNote = (reason: ErrorReason) => Readonly<Record<string, string>>;

/** How one service of a published contract differs from the platform's own, in every call. */
export interface ServiceManners {
  /** Also for errors that no handler has seen: of credentials, of contracts, of bytes that are no message. */
  readonly errorNote?: ErrorNote;
  /** The request as it is meant, before it is held to its contract's rules. */
  prepare?(schema: DescMessage, request: Message): Message;
}

/** Manners by the full names of services, e.g. `nekte.v1.Nekte`. */
export type Manners = ReadonlyMap<string, ServiceManners>;

export const NO_MANNERS: Manners = new Map();
