import type { IncomingHttpHeaders } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import type { Clock } from "@depute/core";
import type { MessageSizes } from "../call-values.ts";
import type { FastMethod } from "./methods.ts";

/** The differences between the protocols of the fast path. grpc.ts and connect.ts implement one each. */
export interface Protocol {
  /** The protocol's name in a handler's context. */
  readonly name: string;
  readonly binary: boolean;
  /** The initial fields of a response's header and trailer. */
  readonly header: Readonly<Record<string, string>>;
  readonly trailer: Readonly<Record<string, string>>;
  /** Whether the protocol lets the fast path serve a request with this head. */
  accepts(headers: IncomingHttpHeaders, maxBytes: number): boolean;
  /**
   * Returns the milliseconds that the caller allows, or an error for a malformed value, which the adapter has to
   * refuse.
   */
  timeoutOf(headers: IncomingHttpHeaders): { timeoutMs?: number; error?: ConnectError };
  /**
   * Returns the size limit of the body in bytes.
   *
   * @returns undefined while the received bytes do not determine the limit, -1 when the adapter must handle the
   * call
   */
  limitOf(chunks: readonly Uint8Array[], length: number, maxBytes: number): number | undefined;
  /** Returns the message in a complete body; undefined when the adapter must handle the call. */
  messageOf(body: Uint8Array, limit: number | undefined): Uint8Array | undefined;
  /** Makes a response with a message. */
  answer(headers: IncomingHttpHeaders, answer: AnswerHead, message: Uint8Array): Answer | Promise<Answer>;
  /** Makes a response with an error. */
  refuse(headers: IncomingHttpHeaders, answer: AnswerHead, error: ConnectError): Answer | Promise<Answer>;
}

export interface AnswerHead {
  readonly header: Headers;
  readonly trailer: Headers;
}

/** The parts of a response, in the order in which they are sent. */
export interface Answer {
  readonly status: number;
  readonly header: Headers;
  readonly body: Uint8Array | undefined;
  readonly trailer: Headers | undefined;
}

/** A call whose headers have arrived. */
export interface Call {
  readonly headers: IncomingHttpHeaders;
  /** The called URL, in the form that Connect's adapter gives to handlers. */
  readonly url: string;
  readonly method: FastMethod;
  readonly protocol: Protocol;
  /** The caller's deadline in epoch milliseconds. */
  readonly due: number | undefined;
  readonly clock: Clock;
  /** The SPIFFE id of the connection's client, in the form that the context value `clientCertificateKey` has. */
  readonly certificate: string | undefined;
  /** The address of the connection's client, in the form that the context value `clientAddressKey` has. */
  readonly address: string;
  /** The sizes of the call's messages. */
  readonly sizes: MessageSizes & { request: number };
}
