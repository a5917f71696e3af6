import type { ClientHttp2Session, IncomingHttpHeaders } from "node:http2";

/** A raw request, which may be malformed. */
export interface RawRequest {
  headers: Record<string, string>;
  /** The DATA frames of the request. If absent or empty, the request ends with its headers. */
  body?: readonly Uint8Array[];
  /** Whether the client leaves the request open after its last frame. */
  open?: boolean;
}

/** All parts of a response. */
export interface RawAnswer {
  headers: IncomingHttpHeaders;
  /** The whole body in base64. */
  body: string;
  trailers: IncomingHttpHeaders;
}

/** Sends a request by POST over HTTP/2, and returns the response. */
export function exchange(
  session: ClientHttp2Session,
  { headers, body = [], open }: RawRequest,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const noBody = body.length === 0 && open !== true;
    const stream = session.request({ ":method": "POST", ...headers }, { endStream: noBody });
    const answer: RawAnswer = { headers: {}, body: "", trailers: {} };
    const chunks: Buffer[] = [];
    stream.on("response", (received) => {
      answer.headers = received;
    });
    stream.on("trailers", (received) => {
      answer.trailers = received;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      answer.body = Buffer.concat(chunks).toString("base64");
      resolve(answer);
      stream.close();
    });
    stream.on("error", reject);
    for (const chunk of body) stream.write(chunk);
    if (!noBody && open !== true) stream.end();
  });
}
