import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createProof, type Keypair } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import type { KeySessions } from "./holder.ts";

/**
 * Returns a transport that authenticates each call to the platform with this key. Every call gets a new proof (RFC
 * 9449), or a code of the key's holder session.
 *
 * @param publicUrl the platform's public address, without a trailing slash
 * @param sessions the holder sessions for all addresses below `publicUrl`, without a token; absent for none
 */
export function provingTransport(
  transport: Transport,
  key: Keypair,
  publicUrl: string,
  sessions?: KeySessions,
): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const claims = { htm: "POST", htu: `${publicUrl}/${method.parent.typeName}/${method.name}` };
      const send = (proof: string) => {
        const headers = new Headers(header);
        headers.set("dpop", proof);
        return transport.unary(method, signal, timeoutMs, headers, input, values);
      };
      const session = sessions?.ready();
      if (session !== undefined) {
        try {
          return await send(session.prove(claims));
        } catch (thrown) {
          if (ConnectError.from(thrown).code !== Code.Unauthenticated) throw thrown;
          // The platform refuses a call with an invalid proof before it executes the call, so the call can be repeated.
          sessions?.forget(session);
        }
      }
      return send(createProof(nativeEngine, key, claims));
    },
    stream() {
      throw new Error("the proxy makes no streaming calls");
    },
  };
}
