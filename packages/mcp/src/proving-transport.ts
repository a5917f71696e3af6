import type { Transport } from "@connectrpc/connect";
import { createProof, type Keypair } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";

/**
 * Calls the platform as the owner of a key: every call has a proof of its own (RFC 9449).
 *
 * @param publicUrl the address under which clients know the platform, without a trailing slash
 */
export function provingTransport(transport: Transport, key: Keypair, publicUrl: string): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const htu = `${publicUrl}/${method.parent.typeName}/${method.name}`;
      const headers = new Headers(header);
      headers.set("dpop", createProof(nativeEngine, key, { htm: "POST", htu }));
      return transport.unary(method, signal, timeoutMs, headers, input, values);
    },
    stream() {
      throw new Error("the proxy makes no streaming calls");
    },
  };
}
