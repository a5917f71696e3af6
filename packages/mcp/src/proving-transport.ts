import type { Transport } from "@connectrpc/connect";
import { createProof, type Keypair } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";

/**
 * Returns a transport that authenticates each call to the platform with this key. Every call gets a new proof (RFC
 * 9449).
 *
 * @param publicUrl the platform's public address, without a trailing slash
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
