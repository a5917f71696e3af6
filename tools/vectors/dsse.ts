import { dsseJson, IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from "@depute/verifier/in-toto";
import { engine, hex, keypairOf, seedOf, utf8, type VectorCase, type VectorFile } from "./shared.ts";

const ROWS: readonly (readonly [name: string, payloadType: string, payload: string])[] = [
  ["an in-toto statement", IN_TOTO_PAYLOAD_TYPE, '{"_type":"https://in-toto.io/Statement/v1"}'],
  ["characters of several bytes", "text/caf\u00e9", "\u20ac"],
  ["nothing", "", ""],
];

export function dsseVectors(): VectorFile {
  return { specification: "dsse.md", cases: ROWS.map(envelopeVector) };
}

function envelopeVector([name, payloadType, text]: (typeof ROWS)[number]): VectorCase {
  const { principal, privateKey } = keypairOf("carol");
  const payload = utf8(text);
  const signed = preAuthEncoding(payloadType, payload);
  const signatures = [{ keyid: principal.id, sig: engine.sign(signed, privateKey) }];
  return {
    name: `envelope: ${name}`,
    operation: "envelope",
    input: { seedHex: hex(seedOf("carol")), payloadType, payloadHex: hex(payload) },
    expected: { signedHex: hex(signed), envelope: dsseJson({ payloadType, payload, signatures }) },
  };
}
