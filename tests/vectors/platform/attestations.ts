import { canonicalJson } from "@depute/core";
import {
  portableEngine as engine,
  keypairFromSeed,
  objectSigningInput,
  signObject,
  verifyObject,
} from "@depute/dct";
import { hexBytes, hexText, type Operations } from "./answer.ts";

export const attestationOperations: Operations = {
  sign({ seedHex, body }) {
    const digestHex = hexText(objectSigningInput(engine, body));
    const keypair = keypairFromSeed(engine, hexBytes(seedHex));
    const { signature } = signObject(engine, "attestation", body, keypair);
    return { expected: { canonical: canonicalJson(body), digestHex, signature } };
  },

  verify({ attestation }) {
    const checked = verifyObject(engine, "attestation", attestation);
    return checked.ok ? { expected: { valid: true } } : { refusal: checked.refusal.problem };
  },
};
