import type { ClientHttp2Session, ClientHttp2Stream, SecureClientSessionOptions } from "node:http2";
import { constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { Http2SessionManager, type Http2SessionOptions } from "@connectrpc/connect-node";

/**
 * A session manager that listens for every error of a connection. Connect's own manager removes its listener after the
 * first error, and when it closes the connection. A server that sends invalid HTTP/2 causes errors after that, and
 * Node.js ends a process that has no listener for an error.
 */
export class SessionManager extends Http2SessionManager {
  readonly #knownSessions = new WeakSet<ClientHttp2Session>();
  readonly #onBroken: () => void;

  /** @param onBroken called for every error of a connection */
  constructor(
    url: string,
    pings: Http2SessionOptions = {},
    options?: SecureClientSessionOptions,
    onBroken = () => {},
  ) {
    super(url, pings, options);
    this.#onBroken = onBroken;
  }

  override async request(
    ...call: Parameters<Http2SessionManager["request"]>
  ): ReturnType<Http2SessionManager["request"]> {
    const stream = await super.request(...call);
    const { session } = stream;
    if (session !== undefined && !this.#knownSessions.has(session as ClientHttp2Session)) {
      this.#knownSessions.add(session as ClientHttp2Session);
      session.on("error", this.#onBroken);
    }
    return failingIfUnanswered(stream);
  }
}

/**
 * Makes a stream fail if it closes with the code NO_ERROR before its response. A process that stops may close its
 * streams with this code. Connect takes the code for success, and would wait until the call's deadline.
 */
function failingIfUnanswered(stream: ClientHttp2Stream): ClientHttp2Stream {
  let isAnswered = false;
  stream.once("response", () => {
    isAnswered = true;
  });
  stream.once("close", () => {
    if (isAnswered || stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.errored !== null) return;
    // If the stream has no listener for errors, no call waits for the stream, and an error would end the process.
    if (stream.listenerCount("error") === 0) return;
    stream.emit("error", new ConnectError("the stream ended before the response", Code.Unavailable));
  });
  return stream;
}
