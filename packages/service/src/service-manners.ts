import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { ErrorReason } from "@depute/core";

/** Data that a service adds to its errors, in addition to the platform's own details. */
export interface NotedError {
  /** Metadata to add to the google.rpc.ErrorInfo of the error. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * The reason and the domain of a second google.rpc.ErrorInfo, for clients of a published protocol. The second
   * ErrorInfo precedes the platform's own.
   */
  readonly info?: { readonly reason: string; readonly domain: string };
}

/** Returns the data that a service adds to an error with this reason. */
export type ErrorNote = (reason: ErrorReason) => NotedError;

/**
 * What one service does differently from the platform's rules in each call, because another party published the
 * service's contract, e.g. A2A's.
 */
export interface ServiceManners {
  /**
   * Adds data to the service's errors. Called also for errors before a handler runs, about credentials, contract rules
   * and invalid bytes.
   */
  readonly errorNote?: ErrorNote;
  /**
   * Timeouts in milliseconds of unary methods that wait for work, by the methods' names, e.g. `SendMessage`. These
   * timeouts replace the platform's default timeout and maximum timeout.
   */
  readonly timeoutsMs?: Readonly<Record<string, number>>;
  /** Adjusts a request before its contract's rules are checked. */
  prepare?(schema: DescMessage, request: Message): Message;
}

/**
 * The ServiceManners of each service that differs from the platform's rules, by the service's full name, e.g.
 * `nekte.v1.Nekte`.
 */
export type Manners = ReadonlyMap<string, ServiceManners>;

export const NO_MANNERS: Manners = new Map();
