import { createHash } from "node:crypto";
import type { Timers } from "@depute/core";
import { AllowedHosts, type Logger, Outbound, type OutboundOptions } from "@depute/service";

/** Maximum size of one fetched artifact, in bytes. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Timeouts in milliseconds: IDLE_MS for each part of a response, LIMIT_MS for the whole response. */
const IDLE_MS = 5_000;
const LIMIT_MS = 15_000;
/** Maximum number of concurrent fetches in one call of `digests`. */
const AT_ONCE = 8;

export interface EvidenceFetcherOptions {
  /**
   * Hosts from which the service may fetch evidence, by the settings. If the list is empty, the class fetches nothing.
   */
  readonly hosts: readonly string[];
  readonly timers: Timers;
  readonly logger: Logger;
  readonly lookup?: OutboundOptions["lookup"];
}

/**
 * Fetches evidence from allowed hosts and computes its hash, which must equal the digest of the evidence. Hashes each
 * response as a stream, and does not store the response.
 */
export class EvidenceFetcher {
  readonly #options: EvidenceFetcherOptions;
  readonly #hosts: AllowedHosts;
  readonly #outbound: Outbound;

  /** @throws Error if the name of a host is malformed */
  constructor(options: EvidenceFetcherOptions) {
    this.#options = options;
    this.#hosts = new AllowedHosts(options.hosts);
    const { lookup } = options;
    this.#outbound = new Outbound({ hosts: this.#hosts, ...(lookup !== undefined && { lookup }) });
  }

  /**
   * Fetches URIs and hashes their content. Omits URIs outside the allowed hosts.
   *
   * @returns for each URI on an allowed host: `sha256:` and hexadecimal digits, or an empty text if the fetch failed
   */
  async digests(uris: readonly string[], signal: AbortSignal): Promise<Map<string, string>> {
    const fetchedTexts = new Map<string, string>();
    const allowed = [...new Set(uris)].filter((uri) => this.#mayFetch(uri));
    const lane = async () => {
      for (let uri = allowed.pop(); uri !== undefined; uri = allowed.pop()) {
        fetchedTexts.set(uri, await this.#digestOf(uri, signal));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    return fetchedTexts;
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
      this.#options.logger.info({ err }, "evidence fetch failed");
      return "";
    } finally {
      cancel();
    }
  }
}
