import { expect, test } from "vitest";
import { dsseJson, preAuthEncoding } from "./in-toto.ts";

test("the pre-authentication encoding equals the example of DSSE's text", () => {
  const bytes = preAuthEncoding("http://example.com/HelloWorld", new TextEncoder().encode("hello world"));
  expect(new TextDecoder().decode(bytes)).toBe("DSSEv1 29 http://example.com/HelloWorld 11 hello world");
});

test("counts lengths in bytes", () => {
  const bytes = preAuthEncoding("é", new TextEncoder().encode("ü"));
  expect(new TextDecoder().decode(bytes)).toBe("DSSEv1 2 é 2 ü");
});

test("writes padded base64, also for many bytes", () => {
  const payload = new Uint8Array(20_000).map((_, i) => i);
  const json = JSON.parse(
    dsseJson({ payloadType: "t", payload, signatures: [{ keyid: "k", sig: new Uint8Array(1) }] }),
  );
  expect(Buffer.from(json.payload, "base64")).toEqual(Buffer.from(payload));
  expect(json.signatures).toEqual([{ keyid: "k", sig: "AA==" }]);
});
