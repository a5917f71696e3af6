import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { decodeBase64Url, decodeHex, encodeBase64Url, encodeHex } from "./bytes-as-text.ts";

describe("base64url", () => {
  test("property: encodes like Node, and decodes its own output", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const text = encodeBase64Url(bytes);
        expect(text).toBe(Buffer.from(bytes).toString("base64url"));
        expect(decodeBase64Url(text)).toEqual(bytes);
      }),
    );
  });

  test("property: encodes every decoded text to the same text", () => {
    const junk = fc.string({ unit: fc.constantFrom("A", "Q", "_", "-", "/", "=", " ", "9", "\u00e9") });
    fc.assert(
      fc.property(junk, (text) => {
        const bytes = decodeBase64Url(text);
        if (bytes !== undefined) expect(encodeBase64Url(bytes)).toBe(text);
      }),
    );
  });

  test.each([
    ["padding", "AA=="],
    ["white space", "AA A"],
    ["a line end", "AAAA\n"],
    ["the other alphabet", "+/AA"],
    ["one character left over", "AAAAA"],
    ["unused bits set, two characters", "AB"],
    ["unused bits set, three characters", "AAB"],
    ["a character beyond ASCII", "AA\u0141A"],
    ["NUL", "AA\u0000A"],
  ])("refuses %s", (_, text) => {
    expect(decodeBase64Url(text)).toBeUndefined();
  });

  test("only one of the sixteen spellings of 64 bytes is read", () => {
    const text = encodeBase64Url(new Uint8Array(64).fill(7));
    const spellings = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
      .map((last) => text.slice(0, -1) + last)
      .filter((spelling) => decodeBase64Url(spelling) !== undefined);
    expect(spellings.filter((s) => Buffer.from(s, "base64url").equals(Buffer.alloc(64, 7)))).toEqual([text]);
  });
});

it.each([
  [[], ""],
  [[0, 1, 15, 16, 255], "00010f10ff"],
])("writes %j as %j", (bytes, text) => {
  expect(encodeHex(Uint8Array.from(bytes))).toBe(text);
  expect(decodeHex(text)).toEqual(Uint8Array.from(bytes));
});

it("encodes and decodes like node:buffer", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(encodeHex(bytes)).toBe(Buffer.from(bytes).toString("hex"));
      expect(decodeHex(encodeHex(bytes))).toEqual(bytes);
    }),
  );
});

it.each(["0", "0g", "AB", " 00", "00\n", "0x00", "00 "])("refuses any other spelling: %j", (text) => {
  expect(decodeHex(text)).toBeUndefined();
});
