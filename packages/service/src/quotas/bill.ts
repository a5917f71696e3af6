import type { CallClass } from "./call-class.ts";
import type { Charge, Quotas } from "./quotas.ts";

/** The caller that pays for a call. */
interface Payer {
  readonly principal: string;
  /** Empty for none. */
  readonly organization: string;
}

/**
 * The use of the caller's quotas by one call. What the call uses before its caller is proven is counted when the caller
 * is proven.
 */
export class Bill {
  readonly #quotas: Quotas;
  readonly #kind: CallClass;
  #payer: Payer | undefined;
  #charge: Charge | undefined;
  /** Bytes of the messages that passed before the caller was proven. */
  #earlyBytes = 0;

  constructor(quotas: Quotas, kind: CallClass) {
    this.#quotas = quotas;
    this.#kind = kind;
  }

  /**
   * Counts the call for its proven caller, once.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  prove(principal: string, organization: string): void {
    if (this.#payer !== undefined) return;
    this.#charge = this.#quotas.charge(this.#kind, principal, organization);
    this.#payer = { principal, organization };
    this.use(this.#earlyBytes);
  }

  /** Counts bytes of messages. */
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

  /** Returns the milliseconds until the caller has room for further bytes; 0 if it has room now. */
  get waitMs(): number {
    if (this.#payer === undefined) return 0;
    const { principal, organization } = this.#payer;
    return this.#quotas.waitOf("bytes", principal, organization);
  }

  /** Ends the charge that lasts until the end of the call, such as an open stream. */
  end(): void {
    this.#charge?.end();
  }
}
