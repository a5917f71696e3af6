/** An error of a call, as Connect's clients throw it. */
export interface CallError {
  /** The number of a gRPC status (google.rpc.Code). */
  readonly code: number;
  /** The text of the error, without the name of the code that `message` begins with. */
  readonly rawMessage: string;
}

/** The gRPC status codes that Connect raises for a broken connection, a reset stream and an incomplete response. */
const CODES: ReadonlySet<number> = new Set([
  1, // CANCELLED
  2, // UNKNOWN
  3, // INVALID_ARGUMENT, for a response that ends in the middle of a message
  10, // ABORTED
  13, // INTERNAL
  14, // UNAVAILABLE
  15, // DATA_LOSS
]);

/**
 * Whether a call failed because the connection or the called process failed. gRPC's status for such a failure is
 * UNAVAILABLE, but Connect raises several codes.
 *
 * @param error an error without a reason (google.rpc.ErrorInfo), because every refusal by the platform has a reason. The
 * caller has not cancelled the call, and its deadline has not passed
 */
export function isTransportFailure({ code, rawMessage }: CallError): boolean {
  // A message that cannot be serialized is a fault of the calling process.
  return CODES.has(code) && !rawMessage.startsWith("serialize ");
}

/**
 * Whether a transport failure is a server's refusal of the call's HTTP/2 stream. The server has not processed the call,
 * so even a call that is not idempotent may be repeated. (RFC 9113 section 8.7)
 */
export function isRefusedStream({ rawMessage }: Pick<CallError, "rawMessage">): boolean {
  return rawMessage.includes("REFUSED_STREAM");
}
