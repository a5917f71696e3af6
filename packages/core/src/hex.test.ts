import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeHex, encodeHex } from "./hex.ts";

it.each([
  [[], ""],
  [[0, 1, 15, 16, 255], "00010f10ff"],
])("writes %j as %j", (bytes, text) => {
  expect(encodeHex(Uint8Array.from(bytes))).toBe(text);
  expect(decodeHex(text)).toEqual(Uint8Array.from(bytes));
});

it("reads back what it writes, as node:buffer does", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(encodeHex(bytes)).toBe(Buffer.from(bytes).toString("hex"));
      expect(decodeHex(encodeHex(bytes))).toEqual(bytes);
    }),
  );
});

it.each(["0", "0g", "AB", " 00", "00\n", "0x00", "00 "])("reads no other spelling: %j", (text) => {
  expect(decodeHex(text)).toBeUndefined();
});
