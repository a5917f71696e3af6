import { fromJson } from "@bufbuild/protobuf";
import { digestOf, holdsIntegrity, SIGNATURE_TAG, seal } from "@depute/asp";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { canonicalJson } from "@depute/core";
import { portableEngine as engine } from "@depute/dct";
import { decodeValid, encode } from "@depute/wire";
import { hexBytes, hexText, type Operations } from "./answer.ts";

const EMPTY = { hash: `sha256:${"0".repeat(64)}`, signature: `ed25519:${"0".repeat(128)}` };

export const aspEnvelopeOperations: Operations = {
  document: ({ message }) => ({
    expected: { document: encode(EnvelopeSchema, fromJson(EnvelopeSchema, message)) },
  }),

  sign({ seedHex, document }) {
    const decoded = decodeValid(EnvelopeSchema, {
      ...document,
      integrity: { ...document.integrity, ...EMPTY },
    });
    if (!decoded.ok) return { refusal: decoded.error.message };
    const sealed = seal(engine, decoded.message as Envelope, hexBytes(seedHex));
    const { hash, signature } = sealed.integrity ?? {};
    const signedHex = hexText(Buffer.from(SIGNATURE_TAG)) + hexText(digestOf(engine, sealed).bytes);
    return { expected: { canonical: canonicalJson(document), signedHex, hash, signature } };
  },

  verify({ document, publicKey }) {
    const decoded = decodeValid(EnvelopeSchema, document);
    const key = Buffer.from(publicKey, "base64url");
    return { expected: { valid: decoded.ok && holdsIntegrity(engine, decoded.message as Envelope, key) } };
  },
};
