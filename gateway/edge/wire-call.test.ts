import { expect, test } from "vitest";
import { holderOf } from "./wire-call.ts";

const KEY = `${"A".repeat(42)}A`;
const proof = (header: unknown) =>
  `${Buffer.from(typeof header === "string" ? header : JSON.stringify(header)).toString("base64url")}.e30.sig`;

test.each<[string, string | null, string | undefined]>([
  ["no proof", null, ""],
  ["a proof", proof({ typ: "dpop+jwt", alg: "EdDSA", jwk: { kty: "OKP", crv: "Ed25519", x: KEY } }), KEY],
  ["no key", proof({ typ: "dpop+jwt" }), undefined],
  ["a key of another kind", proof({ jwk: { x: 7 } }), undefined],
  ["an empty key", proof({ jwk: { x: "" } }), undefined],
  ["an inherited member", proof({ jwk: [] }), undefined],
  ["malformed JSON", proof("{"), undefined],
  ["malformed base64url", "???.e30.sig", undefined],
  ["a session's code", "c2Vzc2lvbg.1.2.3", undefined],
  ["nothing", "", undefined],
])("the holder of a call is read from %s", (_, text, expected) => {
  expect(holderOf(text)).toBe(expected);
});
