import { createHash } from "node:crypto";
import type { Timers } from "@depute/core";
import { AllowedHosts, type Logger, Outbound, type OutboundOptions } from "@depute/service";

/** Bytes of one piece of evidence that are read, from an address. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Milliseconds between two pieces of an answer, and for all of it. */
const IDLE_MS = 5_000;
const LIMIT_MS = 15_000;
/** Addresses that are read at once. */
const AT_ONCE = 8;

export interface EvidenceFetcherOptions {
  /** Hosts that configuration allows; none means that nothing is fetched. */
  readonly hosts: readonly string[];
  readonly timers: Timers;
  readonly logger: Logger;
  readonly lookup?: OutboundOptions["lookup"];
}

/**
 * Reads evidence that lies elsewhere, from hosts that configuration allows and nobody else, to compare it with its digest.
 * It is hashed as it comes and not kept.
 */
export class EvidenceFetcher {
  readonly #options: EvidenceFetcherOptions;
  readonly #hosts: AllowedHosts;
  readonly #outbound: Outbound;

  /** @throws Error for hosts that are none */
  constructor(options: EvidenceFetcherOptions) {
    this.#options = options;
    this.#hosts = new AllowedHosts(options.hosts);
    const { lookup } = options;
    this.#outbound = new Outbound({ hosts: this.#hosts, ...(lookup !== undefined && { lookup }) });
  }

  /**
   * The digests of what is at addresses: `sha256:` and hexadecimal digits; empty where there is nothing to be had. An
   * address that may not be called is left out.
   */
  async digests(uris: readonly string[], signal: AbortSignal): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    const allowed = [...new Set(uris)].filter((uri) => this.#mayFetch(uri));
    const lane = async () => {
      for (let uri = allowed.pop(); uri !== undefined; uri = allowed.pop()) {
        found.set(uri, await this.#digestOf(uri, signal));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    return found;
  }

  close(): void {
    this.#outbound.close();
  }

  #mayFetch(uri: string): boolean {
    if (this.#hosts.isEmpty) return false;
    try {
      this.#outbound.check(uri);
      return true;
    } catch {
      return false;
    }
  }

  async #digestOf(uri: string, caller: AbortSignal): Promise<string> {
    const limit = new AbortController();
    const cancel = this.#options.timers.after(LIMIT_MS, () => limit.abort());
    const signal = AbortSignal.any([caller, limit.signal]);
    try {
      const request = { signal, idleMs: IDLE_MS, maxBytes: MAX_BYTES };
      const { status, body } = await this.#outbound.send(uri, request);
      const hash = createHash("sha256");
      for await (const part of body) hash.update(part);
      return status === 200 ? `sha256:${hash.digest("hex")}` : "";
    } catch (err) {
      caller.throwIfAborted();
      this.#options.logger.info({ err }, "evidence could not be fetched");
      return "";
    } finally {
      cancel();
    }
  }
}
