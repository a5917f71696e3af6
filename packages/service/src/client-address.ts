import type { IncomingHttpHeaders } from "node:http";
import type { Http2Stream, ServerHttp2Stream } from "node:http2";
import { BlockList, isIP } from "node:net";
import { bareAddress, clientAddress, type ForwardedHeader, forwardedAddresses } from "./forwarded.ts";
import type { HttpRequest } from "./http-routes.ts";
import { SettingsError } from "./settings.ts";

/** The entry in the list of trusted proxies that stands for every client of a UNIX socket. */
const UNIX = "unix";

/** Finds the network addresses of clients, also behind trusted proxies. */
export class ClientAddresses {
  readonly #trusted = new BlockList();
  readonly #trustsUnix: boolean;
  readonly #header: ForwardedHeader;

  /**
   * @param proxies IP addresses, networks such as `10.0.0.0/8`, or `unix`
   * @throws SettingsError for any other text
   */
  constructor(proxies: readonly string[] = [], header: ForwardedHeader = "x-forwarded-for") {
    this.#trustsUnix = proxies.includes(UNIX);
    this.#header = header;
    for (const proxy of proxies) if (proxy !== UNIX) this.#add(proxy);
  }

  /** Returns the address of a request's client, without a port; empty for a UNIX socket or a closed connection. */
  ofRequest(request: HttpRequest): string {
    const socket = "stream" in request ? request.stream.session?.socket : request.socket;
    return this.#clientOf(socket, request.headers);
  }

  /** Returns the address as {@link ofRequest} does, for an HTTP/2 stream. */
  ofStream(stream: Http2Stream | ServerHttp2Stream, headers: IncomingHttpHeaders): string {
    return this.#clientOf(stream.session?.socket, headers);
  }

  #clientOf(
    socket: { readonly remoteAddress?: string | undefined } | undefined,
    headers: IncomingHttpHeaders,
  ): string {
    const peer = bareAddress(socket?.remoteAddress ?? "");
    const forwarded = headers[this.#header];
    if (forwarded === undefined) return peer;
    const hops = forwardedAddresses(this.#header, String(forwarded));
    return clientAddress(peer, hops, (address) => this.#isTrusted(address));
  }

  #isTrusted(address: string): boolean {
    if (address === "") return this.#trustsUnix;
    return this.#trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  }

  #add(proxy: string): void {
    const [network = "", length, ...more] = proxy.split("/");
    const family = isIP(network) === 6 ? "ipv6" : "ipv4";
    const bits = length === undefined ? undefined : Number(length);
    const isLength =
      bits === undefined || (/^\d{1,3}$/.test(length ?? "") && bits <= (family === "ipv6" ? 128 : 32));
    if (isIP(network) === 0 || !isLength || more.length > 0) {
      throw new SettingsError(
        `DEPUTE_TRUSTED_PROXIES has ${JSON.stringify(proxy)}; write IP addresses, networks such as 10.0.0.0/8, or unix`,
      );
    }
    if (bits === undefined) this.#trusted.addAddress(network, family);
    else this.#trusted.addSubnet(network, bits, family);
  }
}

/** Finds the addresses of clients when the settings trust no proxy. */
export const DIRECT_CLIENTS: ClientAddresses = new ClientAddresses();
