import type { Transport } from "@connectrpc/connect";
import type { HolderKey } from "./holder.ts";

/**
 * Calls the platform as the owner of a key: every call has a proof of its own (RFC 9449).
 *
 * @param publicUrl the address under which clients know the platform, without a trailing slash
 */
export function provingTransport(transport: Transport, key: HolderKey, publicUrl: string): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const target = `${publicUrl}/${method.parent.typeName}/${method.name}`;
      const headers = new Headers(header);
      headers.set("dpop", await key.proof({ method: "POST", target }));
      return transport.unary(method, signal, timeoutMs, headers, input, values);
    },
    stream() {
      throw new Error("the proxy makes no streaming calls");
    },
  };
}
