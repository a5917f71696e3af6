import fc from "fast-check";
import { expect, test } from "vitest";
import { dataUriBytes, MAX_DATA_URI } from "./data-uri.ts";

const text = (uri: string) => {
  const bytes = dataUriBytes(uri);
  return bytes === undefined ? undefined : Buffer.from(bytes).toString();
};

test.each<[uri: string, bytes: string | undefined]>([
  ["data:,hello", "hello"],
  ["data:,", ""],
  ["DATA:text/plain,a%20b", "a b"],
  ["data:text/plain;charset=utf-8;base64,aGVsbG8=", "hello"],
  ["data:;base64,aGVsbG8", "hello"],
  ["data:;base64,aGVs%62G8=", "hello"],
  ["data:text/plain,;base64,x", ";base64,x"],
  ["data:;base64,aGVs bG8", "hello"],
  ["data:;base64,***", undefined],
  ["data:;base64,aGVsb", undefined],
  ["data:;base64,aGVsbG8==", undefined],
  ["data:;base64,aG=sbG8=", undefined],
  ["data:text/plain", undefined],
  ["data:,%zz", undefined],
  ["data:,%2", undefined],
  ["http://x/,y", undefined],
  [`data:,${"x".repeat(MAX_DATA_URI)}`, undefined],
])("%.40s", (uri, bytes) => {
  expect(text(uri)).toBe(bytes);
});

test("decodes any bytes, in both encodings", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const base64 = Buffer.from(bytes).toString("base64");
      expect(dataUriBytes(`data:;base64,${base64}`)).toEqual(Uint8Array.from(bytes));
      const percent = [...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
      expect(dataUriBytes(`data:,${percent}`)).toEqual(Uint8Array.from(bytes));
    }),
  );
});
