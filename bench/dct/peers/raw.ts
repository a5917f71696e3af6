import { nativeEngine as engine } from "@depute/dct/native";
import { root, TOKENS } from "../tokens.ts";
import type { Operations } from "./operations.ts";

/**
 * The lower bound of the time: only the signatures that an operation needs, over messages of 32 bytes, with the engine
 * of Depute's servers. A token with `links` attenuations has one signature more than attenuations.
 */
export function raw(): Operations {
  const key = engine.publicKey(root.privateKey);
  const messages = Array.from({ length: TOKENS }, (_, n) => engine.sha256(Uint8Array.of(n)));
  const signatures = messages.map((message) => engine.sign(message, root.privateKey));
  let turn = 0;
  const sign = () => () => engine.sign(messages[turn++ % TOKENS] as Uint8Array, root.privateKey);
  const verify = (links: number) => () => {
    for (let i = 0; i <= links; i++) {
      const n = turn++ % TOKENS;
      if (!engine.verify(signatures[n] as Uint8Array, messages[n] as Uint8Array, key)) throw new Error("no");
    }
  };
  return { mint: sign, attenuate: sign, cold: verify, warm: verify };
}
