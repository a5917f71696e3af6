import type { Message } from "@bufbuild/protobuf";
import { encode } from "@depute/core/encode";
import type { Call } from "./call.ts";

/** A message that a call is answered with, in the form that its protocol asks for. */
export function write({ method, protocol }: Call, message: Message): Uint8Array {
  if (protocol.binary) return encode(method.spec.method.output, message);
  return method.serialization.getO(false).serialize(message as never);
}
