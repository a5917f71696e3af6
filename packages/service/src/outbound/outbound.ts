import { lookup as systemLookup } from "node:dns/promises";
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { type AllowedHosts, type AllowedTarget, notAllowed } from "./allowed-hosts.ts";
import { isPublicAddress } from "./public-address.ts";

/** Default maximum number of simultaneous connections to one host. */
const MAX_CONNECTIONS = 64;
/** Maximum bytes of a response's headers. The platform's servers have the same limit for requests. */
const MAX_HEADER_BYTES = 32 * 1024;

/** Returns the addresses of a name, in the form of `dns.lookup` with the option `all`. */
export type Lookup = (hostname: string) => Promise<readonly { address: string; family: number }[]>;

export interface OutboundOptions {
  readonly hosts: AllowedHosts;
  /** Resolves names to addresses; the system's resolver by default. */
  readonly lookup?: Lookup;
  /**
   * Maximum number of simultaneous connections to one host; 64 when absent. Further requests wait for a free
   * connection.
   */
  readonly maxConnections?: number;
  /**
   * Certificates in PEM of the authorities that may sign the hosts' certificates. Default: the authorities of
   * Node.js.
   */
  readonly authorities?: string;
}

export interface OutboundRequest {
  /** The HTTP method; by default GET without a body, else POST. */
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  /** Aborts the request and the reading of its response. */
  readonly signal: AbortSignal;
  /** Maximum wait in milliseconds until the response begins, and between two pieces of the response. */
  readonly idleMs: number;
  /** Maximum number of bytes of the response's body. */
  readonly maxBytes: number;
}

export interface OutboundAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * The pieces of the body, which can be read once. Iteration throws Error when the body is too long, too slow or cut
   * off.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * A checked URL with the IP address to connect to. Do not resolve the name again: DNS could then return another
 * address, which nothing has checked.
 */
export interface PinnedTarget {
  readonly url: URL;
  readonly address: string;
  readonly family: number;
}

/**
 * Sends requests to addresses that callers or agents name, such as an agent's endpoint or a callback. It calls only
 * configured hosts. It checks the IP address of a name at each connection, so a name that later resolves to another
 * address does not evade the check. It returns a redirect as a response, and does not follow it.
 */
export class Outbound {
  readonly #hosts: AllowedHosts;
  readonly #lookup: Lookup;
  readonly #agents: { readonly "http:": HttpAgent; readonly "https:": HttpsAgent };

  constructor({
    hosts,
    lookup = (name) => systemLookup(name, { all: true }),
    maxConnections: maxSockets = MAX_CONNECTIONS,
    authorities: ca,
  }: OutboundOptions) {
    this.#hosts = hosts;
    this.#lookup = lookup;
    this.#agents = {
      "http:": new HttpAgent({ keepAlive: true, maxSockets }),
      "https:": new HttpsAgent({ keepAlive: true, maxSockets, ...(ca !== undefined && { ca }) }),
    };
  }

  /**
   * Checks the text of an address.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED
   */
  check(address: string): URL {
    return this.#hosts.check(address).url;
  }

  /**
   * Returns the IP address to connect to, for code that uses another transport.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED; Error when the name cannot be resolved
   */
  async pin(address: string): Promise<PinnedTarget> {
    const target = this.#hosts.check(address);
    const first = (await this.#resolve(target))[0];
    if (first === undefined) throw new Error(`the name ${target.hostname} has no address`);
    return { url: target.url, ...first };
  }

  /**
   * Sends one request, and returns when the response's headers have arrived.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED; Error when no response arrives in time, or the request fails or is
   * aborted; the signal's reason if it had already aborted
   */
  async send(address: string, options: OutboundRequest): Promise<OutboundAnswer> {
    const target = this.#hosts.check(address);
    const { body, idleMs, signal, maxBytes } = options;
    signal.throwIfAborted();
    const isSecure = target.url.protocol === "https:";
    const request = (isSecure ? httpsRequest : httpRequest)(target.url, {
      method: options.method ?? (body === undefined ? "GET" : "POST"),
      headers: options.headers ?? {},
      agent: this.#agents[isSecure ? "https:" : "http:"],
      maxHeaderSize: MAX_HEADER_BYTES,
      timeout: idleMs,
      lookup: (_hostname, { all }, done) => {
        this.#resolve(target).then(
          (addresses) => {
            if (all === true) done(null, [...addresses]);
            else done(null, addresses[0]?.address ?? "", addresses[0]?.family ?? 0);
          },
          (error: Error) => done(error, ""),
        );
      },
    });
    // The request is destroyed without an error, because a pooled connection has no listener for errors. The signal is
    // not passed to Node.js, which would also bind it to the pooled connection.
    let failure: Error | undefined;
    const end = (why: Error) => {
      failure ??= why;
      request.destroy();
    };
    const abort = () => end(new Error("the request was aborted", { cause: signal.reason }));
    signal.addEventListener("abort", abort, { once: true });
    request.once("close", () => signal.removeEventListener("abort", abort));
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", (error) => reject(failure ?? error));
      request.once("timeout", () => end(new Error(`no answer within ${idleMs} ms`)));
      request.end(body);
    });
    // The reader of the body gets the error. If nothing reads the body, an aborted response must not cause an uncaught
    // error.
    answer.on("error", () => {});
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      body: bounded(answer, maxBytes, () => failure),
    };
  }

  /** Closes all connections, also those in use. */
  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /**
   * Resolves a name to the addresses that may be called. If one address is forbidden, refuses the name, because such a
   * DNS answer is hostile.
   */
  async #resolve({ hostname, mayBePrivate }: AllowedTarget): Promise<{ address: string; family: number }[]> {
    const family = isIP(hostname);
    const addresses = family !== 0 ? [{ address: hostname, family }] : await this.#lookup(hostname);
    if (!mayBePrivate && addresses.some(({ address }) => !isPublicAddress(address))) {
      throw notAllowed(hostname, "its name resolves to a private address");
    }
    return addresses.map(({ address, family }) => ({ address, family }));
  }
}

/** Reads a whole body as text. Throws the errors of the body unchanged. */
export async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function* bounded(
  answer: IncomingMessage,
  maxBytes: number,
  failure: () => Error | undefined,
): AsyncGenerator<Uint8Array> {
  let length = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
      yield chunk;
    }
    const why = failure();
    if (why !== undefined) throw why;
  } catch (error) {
    throw failure() ?? error;
  } finally {
    // If the reader stops early, the connection is closed, because nothing reads further bytes.
    answer.destroy();
  }
}
