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

/** Connections to one host at once, where nothing else is said. */
const MAX_CONNECTIONS = 64;
/** Characters of an answer's headers, as for the platform's own. */
const MAX_HEADER_BYTES = 32 * 1024;

/** Addresses of a name; what `dns.lookup` answers with `all`. */
export type Lookup = (hostname: string) => Promise<readonly { address: string; family: number }[]>;

export interface OutboundOptions {
  readonly hosts: AllowedHosts;
  /** How names become addresses; the system's own way by default. */
  readonly lookup?: Lookup;
  /** Connections to one host at once; further requests wait for one of them. 64 by default. */
  readonly maxConnections?: number;
}

export interface OutboundRequest {
  /** GET without a body, else POST. */
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  /** Ends the request and the reading of its answer. */
  readonly signal: AbortSignal;
  /** Milliseconds until the answer begins, and between two pieces of it. */
  readonly idleMs: number;
  /** Bytes of the body that are read at most. */
  readonly maxBytes: number;
}

export interface OutboundAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body as it comes, to be read once; throws Error when it is too long, too slow or ended. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Where a request really goes: the address was judged, and nothing asks the name again. */
export interface PinnedTarget {
  readonly url: URL;
  readonly address: string;
  readonly family: number;
}

/**
 * Requests to addresses that somebody else named: an agent's endpoint, a callback. Only hosts that configuration lists are
 * called; the address that a name leads to is judged when the connection is made, so that a name that leads elsewhere
 * later gains nothing. Redirects are answers like any other, they are not followed.
 */
export class Outbound {
  readonly #hosts: AllowedHosts;
  readonly #lookup: Lookup;
  readonly #agents: { readonly "http:": HttpAgent; readonly "https:": HttpsAgent };

  constructor({
    hosts,
    lookup = (name) => systemLookup(name, { all: true }),
    maxConnections: maxSockets = MAX_CONNECTIONS,
  }: OutboundOptions) {
    this.#hosts = hosts;
    this.#lookup = lookup;
    this.#agents = {
      "http:": new HttpAgent({ keepAlive: true, maxSockets }),
      "https:": new HttpsAgent({ keepAlive: true, maxSockets }),
    };
  }

  /**
   * Whether an address may be called, as far as its text tells.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED
   */
  check(address: string): URL {
    return this.#hosts.check(address).url;
  }

  /**
   * The address to connect to, for transports of their own.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED; Error when the name leads nowhere
   */
  async pin(address: string): Promise<PinnedTarget> {
    const target = this.#hosts.check(address);
    const first = (await this.#resolve(target))[0];
    if (first === undefined) throw new Error(`the name ${target.hostname} has no address`);
    return { url: target.url, ...first };
  }

  /**
   * Sends one request and answers once its headers are there.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED; Error when there is no answer in time
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
          (found) => {
            if (all === true) done(null, [...found]);
            else done(null, found[0]?.address ?? "", found[0]?.family ?? 0);
          },
          (error: Error) => done(error, ""),
        );
      },
    });
    // Destroyed without an error, which a connection that is just being given back would throw at nobody; and the signal is
    // not given to Node, which would bind the connection to it, too.
    let failure: Error | undefined;
    const end = (why: Error) => {
      failure ??= why;
      request.destroy();
    };
    const abort = () => end(new Error("the request was ended", { cause: signal.reason }));
    signal.addEventListener("abort", abort, { once: true });
    request.once("close", () => signal.removeEventListener("abort", abort));
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", (error) => reject(failure ?? error));
      request.once("timeout", () => end(new Error(`no answer within ${idleMs} ms`)));
      request.end(body);
    });
    // Who reads the body hears of it; while nobody does, an end must not be an error that nobody caught.
    answer.on("error", () => {});
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      body: bounded(answer, maxBytes, () => failure),
    };
  }

  /** Closes the connections that are kept. */
  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /** Addresses that may be connected to. One that may not refuses all: who gives such answers means no good. */
  async #resolve({ hostname, mayBePrivate }: AllowedTarget): Promise<{ address: string; family: number }[]> {
    const family = isIP(hostname);
    const found = family !== 0 ? [{ address: hostname, family }] : await this.#lookup(hostname);
    if (!mayBePrivate && found.some(({ address }) => !isPublicAddress(address))) {
      throw notAllowed(hostname, "its name leads to a private address");
    }
    return found.map(({ address, family }) => ({ address, family }));
  }
}

/** All of a body, as text. Throws as the body does. */
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
    // Who stops reading wants no more of it, and the connection is not kept for the rest.
    answer.destroy();
  }
}
