import type { Interceptor, StreamRequest, StreamResponse } from "@connectrpc/connect";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import { iterateUntilAborted, linkSignals, untilAborted } from "../aborts.ts";
import { type AuthenticationOptions, authenticate, type Presented, proveIdentity } from "../authenticate.ts";
import { clientCertificateKey, principalKey, roleCheckKey, trustedKey } from "../call-values.ts";
import { type Caller, callerKey } from "../caller.ts";
import { type RoleSources, requireRole } from "../roles/caller-roles.ts";
import { rolesOfMethod } from "../roles/method-roles.ts";
import type { Next } from "./outcome.ts";

/**
 * Milliseconds between two checks of the open streams. The credentials files are also read at intervals, so a stream
 * whose credentials were withdrawn ends within five seconds.
 */
export const STREAM_CHECK_MS = 2000;
/** Maximum number of streams that are checked in one turn of the event loop. */
const BATCH = 100;

export interface OpenStreamsOptions extends AuthenticationOptions, Pick<RoleSources, "bySettings"> {
  readonly timers: Timers;
  /** Full names of services that other processes implement. Those processes check the roles of these streams. */
  readonly forwarded: ReadonlySet<string>;
}

/** The callers that one round of checks has authenticated, by their credentials. */
type Round = Map<string, Promise<Caller>>;

/** A stream that is open. */
interface OpenStream {
  /** @throws DeputeError UNAUTHENTICATED or CALLER_NOT_ALLOWED if the caller may no longer open the stream */
  check(round: Round): Promise<void>;
  end(refusal: unknown): void;
}

/**
 * Checks open streams. A stream ends if the caller's credentials are no longer valid for the same principal and
 * organization, or if the caller no longer has a required role. A holder proof cannot be verified again, so for its
 * principal only the roles are checked.
 */
export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #open = new Set<OpenStream>();
  #cancel: (() => void) | undefined;

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
  }

  /**
   * Returns an interceptor that ends a stream with the refusal of its caller, as soon as a check refuses the caller.
   */
  interceptor(): Interceptor {
    return (next) => (request) => (request.stream ? this.#watch(next, request) : next(request));
  }

  async #watch(next: Next, request: StreamRequest): Promise<StreamResponse> {
    const caller = request.contextValues.get(callerKey);
    if (caller === undefined || caller.kind === "local") return next(request) as Promise<StreamResponse>;
    const link = linkSignals(request.signal);
    const stream: OpenStream = {
      check: (round) => this.#check(request, caller, round),
      end: (refusal) => link.abort(refusal),
    };
    this.#open.add(stream);
    // Connect aborts the signal also when a call has ended.
    link.signal.addEventListener("abort", () => this.#forget(stream), { once: true });
    this.#checkLater();
    try {
      const answer = next({ ...request, signal: link.signal }) as Promise<StreamResponse>;
      const response = await untilAborted(link.signal, answer);
      return { ...response, message: iterateUntilAborted(link.signal, response.message) };
    } catch (error) {
      this.#forget(stream);
      throw error;
    }
  }

  #forget(stream: OpenStream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #checkLater(): void {
    if (this.#open.size === 0) return;
    this.#cancel ??= this.#options.timers.after(STREAM_CHECK_MS, () => {
      this.#cancel = undefined;
      this.#checkLater();
      void this.#checkAll();
    });
  }

  async #checkAll(): Promise<void> {
    const round: Round = new Map();
    let count = 0;
    for (const stream of [...this.#open]) {
      if (++count % BATCH === 0) await this.#options.timers.nextTurn();
      // The loop does not await the checks, so a slow issuer delays only the checks of streams whose callers have login
      // tokens of this issuer.
      stream.check(round).catch((refusal: unknown) => stream.end(refusal));
    }
  }

  async #check(
    { method, contextValues, header }: StreamRequest,
    before: Caller,
    round: Round,
  ): Promise<void> {
    let caller = before;
    let principal = before.principal;
    if (before.kind === "credential") {
      caller = await this.#again(
        {
          ...{ header, htm: before.htm, htu: before.htu },
          trusted: contextValues.get(trustedKey),
          certificate: contextValues.get(clientCertificateKey),
        },
        round,
      );
      if (caller.principal !== principal || caller.organization !== before.organization) throw changed();
    } else {
      principal = contextValues.get(principalKey);
      if (principal === "") return;
      contextValues.get(roleCheckKey)?.(principal);
      return;
    }
    if (this.#options.forwarded.has(method.parent.typeName)) return;
    requireRole(rolesOfMethod(method), caller, principal, this.#options);
  }

  #again(presented: Presented, round: Round): Promise<Caller> {
    const { header, certificate } = presented;
    const name = JSON.stringify([
      header.get("authorization"),
      header.get("x-api-key"),
      certificate,
      presented.trusted,
      header.get("depute-client-certificate"),
    ]);
    let caller = round.get(name);
    if (caller === undefined) {
      caller = this.#authenticate(presented);
      round.set(name, caller);
    }
    return caller;
  }

  async #authenticate(presented: Presented): Promise<Caller> {
    return authenticate(this.#options, presented, await proveIdentity(this.#options, presented));
  }
}

function changed(): DeputeError {
  return new DeputeError(
    ErrorReason.UNAUTHENTICATED,
    "the credentials now belong to another principal or organization: open the stream again",
  );
}
