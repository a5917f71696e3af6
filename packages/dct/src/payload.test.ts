import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bytesOf, utf8Of } from "./payload.ts";

const plain = new TextEncoder();
const texts = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .tuple(fc.constantFrom("a", "é", "\u{1f600}", "\ud800"), fc.constantFrom(21_845, 21_846, 65_536, 65_537))
    .map(([unit, length]) => unit.repeat(length)),
);

test("texts are encoded as TextEncoder does", () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(Buffer.from(utf8Of(text)).equals(plain.encode(text))).toBe(true);
    }),
  );
});

test("base64url is decoded as decodeBase64Url does", () => {
  const spelled = fc.oneof(
    texts,
    fc.uint8Array({ maxLength: 300 }).map(encodeBase64Url),
    fc.constantFrom(65_535, 65_536, 65_537).map((length) => encodeBase64Url(new Uint8Array(length).fill(7))),
  );
  fc.assert(
    fc.property(spelled, (text) => {
      const [bytes, expected] = [bytesOf(text), decodeBase64Url(text)];
      if (expected === undefined) expect(bytes).toBeUndefined();
      else expect(Buffer.from(bytes ?? []).equals(expected)).toBe(true);
    }),
  );
});

test("a text after a longer one contains no bytes of it", () => {
  utf8Of("a longer text");
  expect([...utf8Of("b")]).toEqual([98]);
  bytesOf("AAAAAAAA");
  expect([...(bytesOf("_w") ?? [])]).toEqual([255]);
});
