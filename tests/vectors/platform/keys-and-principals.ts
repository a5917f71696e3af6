import { decodeBase64Url } from "@depute/core";
import {
  portableEngine as engine,
  isAdmissible,
  keypairFromSeed,
  parsePrincipal,
  thumbprint,
} from "@depute/dct";
import { type Answer, base64url, hexBytes, hexText, type Operations } from "./answer.ts";

const refused: Answer = { refusal: "malformed_token" };

export const keyOperations: Operations = {
  "decode-base64url": ({ text }) => {
    const bytes = decodeBase64Url(text);
    return bytes === undefined ? refused : { expected: { hex: hexText(bytes) } };
  },

  keypair({ seedHex }) {
    const seed = hexBytes(seedHex);
    const principal = keypairFromSeed(engine, seed).principal.id;
    const publicKeyHex = hexText(engine.publicKey(seed));
    return { expected: { publicKeyHex, principal, thumbprint: thumbprint(engine, principal) } };
  },

  sign({ seedHex, messageHex }) {
    return { expected: { signature: base64url(engine.sign(hexBytes(messageHex), hexBytes(seedHex))) } };
  },

  verify({ publicKeyHex, messageHex, signatureHex }) {
    const [signature, message, key] = [signatureHex, messageHex, publicKeyHex].map(hexBytes) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ];
    return { expected: { valid: engine.verify(signature, message, key) } };
  },

  principal({ principal }) {
    const key = parsePrincipal(principal);
    if (key === undefined) return refused;
    return { expected: { publicKeyHex: hexText(key), admissible: isAdmissible(engine, principal) } };
  },

  blake2b({ dataHex, keyHex }) {
    const data = hexBytes(dataHex);
    return {
      expected: {
        unkeyedHex: hexText(engine.blake2b256(data)),
        keyedHex: hexText(engine.mac(hexBytes(keyHex), data)),
      },
    };
  },
};
