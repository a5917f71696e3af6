import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { canonicalJson } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode, decodeValid, encode, MAX_ECHO, parseJson } from "./index.ts";
import { isInline } from "./names.ts";
import { planOf } from "./plan.ts";
import { contracts } from "./testing/contracts.ts";
import { documentsOf } from "./testing/documents.ts";

const messages = [...contracts.values()];

/** JSON-like junk: anything at all, JSON, and values that JSON parsers never return. */
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
  test("has wire options that agree with each other", () => {
    if (isInline(schema)) expect(decode(schema, undefined).ok).toBe(false);
    else for (const tag of planOf(schema).tags) for (const member of tag.byWord.values()) member.plan();
  });

  test("gives back every document that its options allow", () => {
    fc.assert(
      fc.property(documentsOf(schema), (document) => {
        const decoded = decode(schema, document);
        if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
        const again = fromBinary(schema, toBinary(schema, decoded.message));
        // Compared as canonical texts: matchers look at `constructor` and `__proto__` members in ways of their own.
        expect(canonicalJson(encode(schema, again))).toBe(canonicalJson(document));
      }),
      { numRuns: 60 },
    );
  });

  test("takes junk without throwing", () => {
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
  test("returns what JSON.parse returns, and says where a text stops being JSON", () => {
    const texts = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", ",", "}", "]", '"', "\\", "\u0000", "01", "-", "e", " "),
      )
      .map(
        ([text, at, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice(at % (text.length + 1)),
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

  test("takes any bytes without throwing", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const parsed = parseJson(bytes);
        if (!parsed.ok) expect(parsed.error.path.length).toBeLessThanOrEqual(2 * MAX_ECHO);
      }),
    );
  });
});

/** The position that JSON.parse gives in its message, when it gives one. */
function positionIn(error: unknown, text: string): { position?: number } {
  const { message } = error as SyntaxError;
  if (message === "Unexpected end of JSON input") return { position: text.length };
  const found = /at position (\d+)/.exec(message);
  return found === null ? {} : { position: Number(found[1]) };
}
