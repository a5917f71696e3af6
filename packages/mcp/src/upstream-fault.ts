import { ProtocolError, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";

/** What happened to a call that brought no result. */
export type UpstreamFault =
  /** It never reached the server. */
  | { readonly kind: "unsent"; readonly detail: string }
  /** It may have been carried out. */
  | { readonly kind: "lost" | "timeout" | "malformed" | "cancelled"; readonly detail: string }
  /** The server's own error. */
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown };

export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly fault: UpstreamFault;

  constructor(fault: UpstreamFault) {
    super(fault.kind === "error" ? fault.message : fault.detail);
    this.fault = fault;
  }
}

/** What became of a call that threw. */
export function faultOf(thrown: unknown, signal: AbortSignal | undefined): UpstreamFault {
  if (thrown instanceof ProtocolError) {
    const { code, message, data } = thrown;
    return { kind: "error", code, message, data };
  }
  const detail = messageOf(thrown);
  if (signal?.aborted === true) return { kind: "cancelled", detail: "the caller cancelled the request" };
  if (!(thrown instanceof SdkError)) return { kind: "lost", detail };
  switch (thrown.code) {
    case SdkErrorCode.RequestTimeout:
      return { kind: "timeout", detail };
    case SdkErrorCode.InvalidResult:
    case SdkErrorCode.UnsupportedResultType:
      return { kind: "malformed", detail: detail.slice(0, 256) };
    case SdkErrorCode.NotConnected:
    case SdkErrorCode.MethodNotSupportedByProtocolVersion:
    case SdkErrorCode.CapabilityNotSupported:
      return { kind: "unsent", detail };
    default:
      return { kind: "lost", detail };
  }
}

/** A fault in a few words. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
