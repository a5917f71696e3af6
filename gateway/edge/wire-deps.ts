import type { IncomingHttpHeaders } from "node:http";
import type { Clock, Timers } from "@depute/core";
import type { BodyLimits, ClientAddresses, Logger, ServiceDeps } from "@depute/service";

/** The dependencies of every wire. */
export interface WireDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  /** The platform's address for clients, without a trailing slash. Its value is set only after the server listens. */
  readonly publicUrl: string;
  /** Finds the network address of a request's client. */
  readonly addresses: ClientAddresses;
  /** The turns of callers; see `ServiceDeps.turns`. */
  readonly turns: ServiceDeps["turns"];
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  readonly bodies: BodyLimits;
  /**
   * Returns the principal of a request's login; see `ServiceDeps.loginOf`.
   *
   * @throws DeputeError UNAUTHENTICATED
   */
  readonly loginOf: (headers: IncomingHttpHeaders, certificate?: string) => Promise<string>;
  /** Returns the OpenID Connect issuers whose login tokens the platform accepts. */
  readonly issuers: () => readonly string[];
  /**
   * Returns the caller's principal for a log line; see `presentedPrincipal`. Returns an empty text if this process has
   * not verified the credentials itself.
   */
  readonly principalOf: (headers: IncomingHttpHeaders, certificate?: string) => string;
}
