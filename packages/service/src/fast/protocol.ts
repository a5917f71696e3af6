import type { IncomingHttpHeaders } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";

/** What is told apart between the protocols that the fast path speaks. The files grpc.ts and connect.ts have one each. */
export interface Protocol {
  /** As handlers see it. */
  readonly name: string;
  readonly binary: boolean;
  /** Fields that an answer's header and trailer begin with. */
  readonly header: Readonly<Record<string, string>>;
  readonly trailer: Readonly<Record<string, string>>;
  /** Whether the head of a request is one for the fast path, as far as the protocol is concerned. */
  accepts(headers: IncomingHttpHeaders, maxBytes: number): boolean;
  /** Milliseconds that the caller allows; an error for a text that the adapter has to refuse. */
  timeoutOf(headers: IncomingHttpHeaders): { timeoutMs?: number; error?: ConnectError };
  /**
   * The most bytes that the body may have.
   *
   * @returns undefined when what has come of it does not tell yet, -1 when the adapter has to see to it
   */
  limitOf(chunks: readonly Uint8Array[], length: number, maxBytes: number): number | undefined;
  /** The message in a complete body; undefined when the adapter has to see to it. */
  messageOf(body: Uint8Array, limit: number | undefined): Uint8Array | undefined;
  /** An answer with a message. */
  answer(headers: IncomingHttpHeaders, answer: AnswerHead, message: Uint8Array): Answer | Promise<Answer>;
  /** An answer with an error. */
  refuse(headers: IncomingHttpHeaders, answer: AnswerHead, error: ConnectError): Answer | Promise<Answer>;
}

export interface AnswerHead {
  readonly header: Headers;
  readonly trailer: Headers;
}

/** What is written to the stream. */
export interface Answer {
  readonly status: number;
  readonly header: Headers;
  readonly body: Uint8Array | undefined;
  readonly trailer: Headers | undefined;
}
