import type { IncomingHttpHeaders } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import type { Clock } from "@depute/core";
import type { MessageSizes } from "../call-values.ts";
import type { FastMethod } from "./methods.ts";

/** The differences between the protocols of the fast path. grpc.ts and connect.ts implement them. */
export interface Protocol {
  /** The protocol's name in a handler's context. */
  readonly name: string;
  readonly binary: boolean;
  /** The fields with which the header and the trailer of each response begin. */
  readonly header: Readonly<Record<string, string>>;
  readonly trailer: Readonly<Record<string, string>>;
  /** Whether the protocol lets the fast path serve a request with this head. */
  accepts(headers: IncomingHttpHeaders, maxBytes: number): boolean;
  /**
   * Returns the timeout that the caller set, in milliseconds, or an error for a malformed timeout, which the adapter
   * must refuse. Both are absent if the caller set none.
   */
  timeoutOf(headers: IncomingHttpHeaders): { timeoutMs?: number; error?: ConnectError };
  /**
   * Returns the maximum size of the body in bytes.
   *
   * @returns undefined while the received bytes do not determine the limit, -1 when the adapter must handle the call
   */
  limitOf(chunks: readonly Buffer[], length: number, maxBytes: number): number | undefined;
  /** Returns the bytes of the message in a complete body; undefined if the adapter must handle the call. */
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
  readonly httpVersion: "1.1" | "2.0";
  readonly headers: IncomingHttpHeaders;
  /** The called URL, in the form in which Connect's adapter passes it to handlers. */
  readonly url: string;
  readonly method: FastMethod;
  readonly protocol: Protocol;
  /** The caller's deadline in epoch milliseconds; undefined for none. */
  readonly due: number | undefined;
  readonly clock: Clock;
  /** The SPIFFE id of the connection's client, see `clientCertificateKey`. */
  readonly certificate: string | undefined;
  /** The address of the connection's client, see `clientAddressKey`. */
  readonly address: string;
  /** The sizes of the call's messages, in bytes. */
  readonly sizes: MessageSizes & { request: number };
}
