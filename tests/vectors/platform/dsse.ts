import { portableEngine as engine } from "@depute/dct";
import { preAuthEncoding } from "@depute/verifier/in-toto";
import { hexBytes, hexText, type Operations } from "./answer.ts";

export const dsseOperations: Operations = {
  /** Reads the file's envelope as any DSSE reader does. */
  envelope({ payloadType, payloadHex }, { expected }) {
    const { envelope } = expected as { envelope: string };
    const { payload, signatures, ...rest } = JSON.parse(envelope);
    const signed = preAuthEncoding(rest.payloadType, Buffer.from(payload, "base64"));
    const [{ keyid, sig }] = signatures;
    const key = Buffer.from(keyid, "base64url");
    const holds = engine.verify(Buffer.from(sig, "base64"), signed, key);
    const isSame = hexText(hexBytes(payloadHex)) === hexText(Buffer.from(payload, "base64"));
    if (!holds || !isSame || rest.payloadType !== payloadType) return { refusal: "invalid_signature" };
    return { expected: { signedHex: hexText(signed), envelope } };
  },
};
