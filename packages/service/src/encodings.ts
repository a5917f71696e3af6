import type { HandlerContext } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { DeputeError, ErrorReason } from "@depute/core";
import { toWire, withNote } from "./errors-on-wire.ts";
import type { Manners } from "./service-manners.ts";

/** The compressions that the server supports in both directions. Uncompressed messages are always allowed. */
export const COMPRESSIONS = [compressionGzip];

const SUPPORTED = COMPRESSIONS.map(({ name }) => name).join(",");

/** Maximum number of characters of an encoding's name that a refusal repeats. */
const MAX_NAME_CHARS = 64;

/**
 * Returns a function that throws ConnectError UNSUPPORTED_ENCODING for a request in an unsupported encoding, before the
 * body of the request is read. A header of the response names the supported encodings. (gRPC "Compression", Connect
 * "Unary-Request")
 */
export function encodingGate(manners: Manners): (context: HandlerContext) => void {
  return (context) => {
    const { requested, acceptHeader } = encodingOf(context);
    if (requested === null || requested === "identity") return;
    if (COMPRESSIONS.some(({ name }) => name === requested)) return;
    context.responseHeader.set(acceptHeader, SUPPORTED);
    const encoding = requested.slice(0, MAX_NAME_CHARS).toWellFormed();
    const refusal = new DeputeError(
      ErrorReason.UNSUPPORTED_ENCODING,
      `the request's encoding "${encoding}" is not supported: send ${SUPPORTED} or identity`,
      { metadata: { encoding, supported: SUPPORTED } },
    );
    throw withNote(toWire(refusal), manners.get(context.service.typeName)?.errorNote);
  };
}

interface Encoding {
  readonly requested: string | null;
  /** The response header that names the supported encodings. */
  readonly acceptHeader: string;
}

function encodingOf({ protocolName, requestMethod, requestHeader, method, url }: HandlerContext): Encoding {
  if (protocolName !== "connect")
    return { requested: requestHeader.get("grpc-encoding"), acceptHeader: "grpc-accept-encoding" };
  if (method.methodKind !== "unary") {
    const requested = requestHeader.get("connect-content-encoding");
    return { requested, acceptHeader: "connect-accept-encoding" };
  }
  const requested =
    requestMethod === "GET"
      ? new URL(url).searchParams.get("compression")
      : requestHeader.get("content-encoding");
  return { requested, acceptHeader: "accept-encoding" };
}
