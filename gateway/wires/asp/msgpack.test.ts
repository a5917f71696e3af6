import type { JsonValue } from "@bufbuild/protobuf";
import { MAX_DEPTH } from "@depute/wire";
import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseMsgpack, toMsgpack } from "./msgpack.ts";

const bytes = (...parts: readonly (number | string)[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === "number" ? [part] : [...Buffer.from(part)])));

const fault = (input: Uint8Array) => {
  const parsed = parseMsgpack(input);
  return parsed.ok ? "parsed" : parsed.error.message;
};

test("a value of JSON's types is unchanged", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const json = JSON.parse(JSON.stringify(value)) as JsonValue;
      const parsed = parseMsgpack(toMsgpack(json));
      // Skips values with a member `__proto__`. parseMsgpack refuses that name, because no document of ASP has it.
      if (JSON.stringify(json).includes("__proto__")) return;
      expect(parsed).toEqual({ ok: true, value: json });
    }),
  );
});

test("any bytes are a document of JSON's types, or refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (input) => {
      const parsed = parseMsgpack(input);
      if (parsed.ok) expect(parseMsgpack(toMsgpack(parsed.value)).ok).toBe(true);
    }),
  );
});

describe("refused", () => {
  test.each<[string, Uint8Array, string]>([
    ["nothing", bytes(), "is incomplete"],
    ["a truncated text", bytes(0xa5, "abc"), "is incomplete"],
    ["a truncated number", bytes(0xcb, 0, 0), "is incomplete"],
    ["a list of four billion elements", bytes(0xdd, 0xff, 0xff, 0xff, 0xff), "is incomplete"],
    ["lists that announce more elements than follow", new Uint8Array(500_000).fill(0xdc), "is incomplete"],
    ["bytes after the document", bytes(0xc0, 0xc0), "bytes follow"],
    ["binary data", encode({ a: new Uint8Array() }), "binary data"],
    ["a timestamp", encode({ a: new Date(0) }), "extension type"],
    ["an undefined byte", bytes(0xc1), "extension type"],
    ["a name that is a number", bytes(0x81, 1, 1), "names of members must be strings"],
    ["a repeated name", bytes(0x82, 0xa1, "a", 1, 0xa1, "a", 2), "a member occurs twice"],
    ["__proto__", bytes(0x81, 0xa9, "__proto__", 0x80), "__proto__"],
    ["nesting one level too deep", new Uint8Array(MAX_DEPTH + 2).fill(0x91), "too deep"],
    ["a number that is NaN", bytes(0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0), "too large"],
  ])("%s", (_name, input, message) => {
    expect(fault(input)).toContain(message);
  });
});
