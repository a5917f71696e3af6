import { describe, expect, test } from "vitest";
import { MAX_BYTES, MAX_DEPTH, parseJson } from "./index.ts";

const bytes = (...codes: number[]) => Uint8Array.from(codes);
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("parseJson refuses", () => {
  test.each([
    ["an empty text", "", "not_json", ""],
    ["a truncated text", '{"a":', "not_json", ""],
    ["a trailing comma", "[1,]", "not_json", ""],
    ["a comment", '{"a":1}// no', "not_json", ""],
    ["bytes that are not UTF-8", bytes(0x22, 0xc3, 0x28, 0x22), "not_utf8", ""],
    ["a surrogate written in UTF-8", bytes(0x22, 0xed, 0xa0, 0x80, 0x22), "not_utf8", ""],
    ["a byte order mark in bytes", bytes(0xef, 0xbb, 0xbf, 0x31), "not_utf8", ""],
    ["a byte order mark in a string", "\uFEFF1", "not_utf8", ""],
    ["a number beyond a double", '{"a":[1,1e400]}', "number_range", "/a/1"],
    ["half of a surrogate pair", '["ok","\\ud800"]', "lone_surrogate", "/1"],
    ["half of a surrogate pair in a name", '{"\\udc00":1}', "lone_surrogate", "/\udc00"],
    ["nesting one level too deep", nested(MAX_DEPTH + 1), "too_deep", "/0".repeat(MAX_DEPTH)],
    ["a text one byte too large", `"${"x".repeat(MAX_BYTES - 1)}"`, "too_large", ""],
  ])("%s", (_name, input, reason, path) => {
    expect(parseJson(input)).toMatchObject({ ok: false, error: { reason, path } });
  });

  test("nesting of 100,000 levels, without recursing into them", () => {
    expect(parseJson(nested(100_000))).toMatchObject({ ok: false, error: { reason: "too_deep" } });
  });
});

describe("parseJson reports the position where a text stops being JSON", () => {
  test.each([
    ["", 0],
    ["{'a':1}", 1],
    ['{"a" 1}', 5],
    ['{"a":tru}', 8],
    ['["a\\x"]', 4],
    ["[1.]", 3],
    ["[01]", 2],
    ["1 2", 2],
    ['{"a":1,}', 7],
  ])("%s", (text, position) => {
    expect(parseJson(text)).toMatchObject({ ok: false, error: { position } });
  });
});

describe("parseJson accepts", () => {
  test.each([
    ["nesting as deep as allowed", nested(MAX_DEPTH)],
    ["a text as large as allowed", `"${"x".repeat(MAX_BYTES - 2)}"`],
    ["a surrogate pair", '"\\ud83d\\ude00"'],
    ["the greatest double", "1.7976931348623157e308"],
  ])("%s", (_name, text) => {
    expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  test("UTF-8 bytes", () => {
    expect(parseJson(new TextEncoder().encode('{"é":"😀"}'))).toEqual({ ok: true, value: { é: "😀" } });
  });

  test("a member named __proto__ as data", () => {
    const parsed = parseJson('{"__proto__":{"polluted":true}}');
    expect(parsed.ok && Object.keys(parsed.value as object)).toEqual(["__proto__"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("smaller limits than its own", () => {
    expect(parseJson("[[1]]", { maxDepth: 1 })).toMatchObject({ ok: false, error: { reason: "too_deep" } });
    expect(parseJson("12345", { maxBytes: 4 })).toMatchObject({ ok: false, error: { reason: "too_large" } });
  });
});
