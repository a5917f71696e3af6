import type { CallClass } from "./call-class.ts";
import type { Charge, Quotas } from "./quotas.ts";

/** The caller that pays for a call. */
interface Payer {
  readonly principal: string;
  /** The organization that pays as well; empty for none. */
  readonly organization: string;
}

/**
 * Counts the use of one call against the quotas of its caller. Bytes that pass before the caller is proven are counted
 * as soon as the caller is proven.
 */
export class Bill {
  readonly #quotas: Quotas;
  readonly #kind: CallClass;
  #payer: Payer | undefined;
  #charge: Charge | undefined;
  /** Bytes of the messages that have passed before the caller was proven. */
  #earlyBytes = 0;

  constructor(quotas: Quotas, kind: CallClass) {
    this.#quotas = quotas;
    this.#kind = kind;
  }

  /**
   * Sets the proven caller, and counts the call against the caller's quotas. Only the first call of this method has an
   * effect.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  prove(principal: string, organization: string): void {
    if (this.#payer !== undefined) return;
    this.#charge = this.#quotas.charge(this.#kind, principal, organization);
    this.#payer = { principal, organization };
    this.use(this.#earlyBytes);
  }

  /** Counts bytes of the call's messages. */
  use(bytes: number): void {
    if (this.#payer === undefined) {
      this.#earlyBytes += bytes;
      return;
    }
    const { principal, organization } = this.#payer;
    this.#quotas.use("bytes", bytes, principal, organization);
  }

  /** Counts the milliseconds of processor time that verification used. */
  useCpu(ms: number): void {
    if (this.#payer === undefined || ms === 0) return;
    const { principal, organization } = this.#payer;
    this.#quotas.use("verification_cpu_ms", ms, principal, organization);
  }

  /**
   * Returns the milliseconds until the caller has room for further bytes; 0 if the caller has room now, or is not
   * proven yet.
   */
  get waitMs(): number {
    if (this.#payer === undefined) return 0;
    const { principal, organization } = this.#payer;
    return this.#quotas.waitOf("bytes", principal, organization);
  }

  /** Ends the count of an open stream. Call it at the end of the call. */
  end(): void {
    this.#charge?.end();
  }
}
