import { ProtocolError, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import { limitOfOversize } from "./oversize.ts";
import { NotWritten, type Sent } from "./stdio-transport.ts";

/** The reason why a call has no result. */
export type UpstreamFault =
  /** The call never reached the server. */
  | { readonly kind: "unsent"; readonly detail: string }
  /** The server may have carried out the call. */
  | {
      readonly kind: "lost" | "timeout" | "malformed" | "cancelled";
      readonly detail: string;
    }
  | { readonly kind: "oversize"; readonly detail: string; readonly maxBytes: number }
  /** The server answered with an error. */
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown };

export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly fault: UpstreamFault;

  constructor(fault: UpstreamFault) {
    super(fault.kind === "error" ? fault.message : fault.detail);
    this.fault = fault;
  }
}

/** System errors that occur before the proxy has sent any byte over HTTP. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

/**
 * Converts the exception of a call to a fault.
 *
 * @param sent whether the call was sent; undefined if unknown
 */
export function faultOf(
  thrown: unknown,
  signal: AbortSignal | undefined,
  sent: Sent | undefined,
): UpstreamFault {
  if (thrown instanceof ProtocolError) {
    const { code, message, data } = thrown;
    const maxBytes = limitOfOversize(data);
    if (maxBytes !== undefined) return { kind: "oversize", detail: message, maxBytes };
    return { kind: "error", code, message, data };
  }
  const detail = messageOf(thrown);
  const isUnsent = sent?.isWritten === false || thrown instanceof NotWritten || isNoConnection(thrown);
  if (isUnsent) return { kind: "unsent", detail };
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

/** Whether an exception means that the server did not state its MCP revisions. */
export function isNoEra(thrown: unknown): boolean {
  return thrown instanceof SdkError && thrown.code === SdkErrorCode.EraNegotiationFailed;
}

function isNoConnection(thrown: unknown): boolean {
  const { cause } = (thrown ?? {}) as { cause?: { code?: unknown } };
  return thrown instanceof TypeError && NO_CONNECTION.has(cause?.code);
}

/** Returns the message of an Error; any other exception as text. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
