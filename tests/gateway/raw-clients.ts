import { request as request1 } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";

/** A request of a test. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The part of the body that is sent; absent for a request without a body. */
  readonly body?: Uint8Array;
  /** Whether the body never ends. */
  readonly endless?: boolean;
}

/** The response to a request, and the end of the connection or stream that carried it. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly bytes: Buffer;
  readonly trailers: Readonly<Record<string, unknown>>;
  /** Resolves when the connection (HTTP/1.1) or the stream (HTTP/2) is closed: with 0 or the stream's error code. */
  readonly closed: Promise<number>;
}

export type Ask = (request: RawRequest) => Promise<RawAnswer>;

/** Makes an HTTP/1.1 client that opens a new connection for each request. */
export function overHttp1(url: string): Ask {
  return ({ method, path, headers = {}, body, endless }) =>
    new Promise((resolve, reject) => {
      const framing = body === undefined ? {} : { "transfer-encoding": "chunked" };
      const sent = request1(`${url}${path}`, { method, headers: { ...framing, ...headers }, agent: false });
      const closed = new Promise<number>((settle) => {
        sent.on("socket", (socket) => socket.on("close", () => settle(0)));
      });
      sent.on("error", reject);
      sent.on("response", (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            bytes: Buffer.concat(chunks),
            trailers: answer.trailers,
            closed,
          }),
        );
      });
      if (body !== undefined) sent.write(body);
      if (endless === true) sent.flushHeaders();
      else sent.end();
    });
}

/** Makes a clear-text HTTP/2 client that uses one connection for all requests. */
export function overHttp2(url: string): { ask: Ask; session: ClientHttp2Session } {
  const session = connect(url);
  const ask: Ask = ({ method, path, headers = {}, body, endless }) =>
    new Promise((resolve, reject) => {
      const stream = session.request(
        { ":method": method, ":path": path, ...headers },
        { endStream: body === undefined },
      );
      let status = 0;
      let received: Record<string, unknown> = {};
      let trailers: Record<string, unknown> = {};
      const chunks: Buffer[] = [];
      const closed = new Promise<number>((settle) => {
        stream.on("close", () => settle(stream.rstCode ?? 0));
      });
      stream.on("response", (head) => {
        received = head;
        status = Number(head[":status"]);
      });
      stream.on("trailers", (fields) => {
        trailers = fields;
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("end", () =>
        resolve({ status, headers: received, bytes: Buffer.concat(chunks), trailers, closed }),
      );
      if (body !== undefined) stream.write(body);
      if (body !== undefined && endless !== true) stream.end();
    });
  return { ask, session };
}
