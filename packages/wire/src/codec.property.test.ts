import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { canonicalJson } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode, decodeValid, encode, MAX_ECHO, parseJson } from "./index.ts";
import { messageCodec } from "./message.ts";
import { isInline } from "./names.ts";
import { planOf } from "./plan.ts";
import { contracts } from "./testing/contracts.ts";
import { documentsOf } from "./testing/documents.ts";

const messages = [...contracts.values()];

/** Values of every kind: any value, JSON, and values that JSON parsers never return. */
const junk = fc.oneof(
  fc.jsonValue({ noUnicodeString: false }),
  fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSparseArray: true,
    withTypedArray: true,
  }),
);

describe.each(messages)("$typeName", (schema) => {
  test("has consistent wire options", () => {
    if (isInline(schema)) expect(decode(schema, undefined).ok).toBe(false);
    else
      for (const tag of planOf(schema, messageCodec).tags)
        for (const member of tag.byWord.values()) member.plan();
  });

  test("returns every document that its options allow", () => {
    fc.assert(
      fc.property(documentsOf(schema), (document) => {
        const decoded = decode(schema, document);
        if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
        const again = fromBinary(schema, toBinary(schema, decoded.message));
        // Compares canonical texts, because matchers treat members named `constructor` and `__proto__` specially.
        expect(canonicalJson(encode(schema, again))).toBe(canonicalJson(document));
      }),
      { numRuns: 60 },
    );
  });

  test("accepts junk without throwing", () => {
    fc.assert(
      fc.property(junk, (value) => {
        const decoded = decodeValid(schema, value);
        if (!decoded.ok) expect(decoded.error.message).not.toBe("");
      }),
      { numRuns: 60 },
    );
  });
});

describe("parseJson", () => {
  test("returns the value of JSON.parse, and the position where a text stops being JSON", () => {
    const texts = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", ",", "}", "]", '"', "\\", "\u0000", "01", "-", "e", " "),
      )
      .map(
        ([text, at, inserted]) =>
          text.slice(0, at % (text.length + 1)) + inserted + text.slice(at % (text.length + 1)),
      );
    fc.assert(
      fc.property(texts, (text) => {
        const parsed = parseJson(text);
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch (error) {
          const position = positionIn(error, text);
          expect(parsed).toMatchObject({ ok: false, error: { reason: "not_json", ...position } });
          return;
        }
        if (parsed.ok) expect(canonicalJson(parsed.value)).toBe(canonicalJson(expected));
        else expect(["lone_surrogate", "number_range", "duplicate_member"]).toContain(parsed.error.reason);
      }),
      { numRuns: 1000 },
    );
  });

  test("accepts any bytes without throwing", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const parsed = parseJson(bytes);
        if (!parsed.ok) expect(parsed.error.path.length).toBeLessThanOrEqual(2 * MAX_ECHO);
      }),
    );
  });
});

/** Returns the position that the error message of JSON.parse contains, if there is one. */
function positionIn(error: unknown, text: string): { position?: number } {
  const { message } = error as SyntaxError;
  if (message === "Unexpected end of JSON input") return { position: text.length };
  const found = /at position (\d+)/.exec(message);
  return found === null ? {} : { position: Number(found[1]) };
}
