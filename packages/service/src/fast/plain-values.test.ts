import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PlainHeaders, toNodeHeaders } from "./plain-values.ts";

const name = fc.constantFrom(
  "a",
  "A",
  "b-c",
  "x_y",
  "set-cookie",
  "Set-Cookie",
  "te",
  "constructor",
  "__proto__",
  "",
);
const value = fc.constantFrom("", "v", "v w", " v ", "v, w", "\tv", "é", "\u0100", "a\nb");
const step = fc.oneof(
  fc.tuple(fc.constantFrom("get", "has", "delete"), name),
  fc.tuple(fc.constantFrom("set", "append"), name, value),
  fc.tuple(fc.constantFrom("getSetCookie", "entries", "keys", "values")),
) as fc.Arbitrary<[keyof Headers, ...string[]]>;

/** Calls a method of headers, and returns its result; the text "throws" if it throws. */
function take(headers: Headers, [method, ...args]: [keyof Headers, ...string[]]): unknown {
  try {
    const answer = (headers[method] as (...all: string[]) => unknown).call(headers, ...args);
    return typeof answer === "object" && answer !== null ? [...(answer as Iterable<unknown>)] : answer;
  } catch {
    return "throws";
  }
}

describe("PlainHeaders", () => {
  it("behave like Headers under any operations", () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 12 }), (received, steps) => {
        const begin = { a: "1", "b-c": "2, 3" };
        const plain = received
          ? PlainHeaders.received({ ...begin, ":path": "/" })
          : PlainHeaders.toSend({ ...begin });
        const full = new Headers(begin);
        for (const each of steps) expect(take(plain, each)).toEqual(take(full, each));
        expect([...plain]).toEqual([...full]);
      }),
    );
  });

  it("are copied with all their values, and apart from their original", () => {
    const step = fc.tuple(fc.constantFrom("set", "append"), name, value) as fc.Arbitrary<
      [keyof Headers, string, string]
    >;
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 6 }), (received, steps) => {
        const begin = { a: "1", "b-c": "2, 3" };
        const original = received
          ? PlainHeaders.received({ ...begin, ":path": "/" })
          : PlainHeaders.toSend(begin);
        for (const each of steps) take(original, each);
        const before = [...original];
        const copy = PlainHeaders.copyOf(original);
        // As a copy by Headers, which trims each value.
        expect([...copy]).toEqual([...new Headers(before)]);
        copy.set("a", "changed");
        expect([copy.get("a"), [...original]]).toEqual(["changed", before]);
      }),
    );
    expect([...PlainHeaders.copyOf(undefined)]).toEqual([]);
    expect(PlainHeaders.copyOf({ a: "1" }).get("a")).toBe("1");
  });

  it("leave the received headers unchanged", () => {
    const received = Object.freeze({ ":path": "/", a: "1" });
    const headers = PlainHeaders.received(received);
    headers.set("a", "2");
    headers.set("b", "3");
    expect([...headers]).toEqual([
      ["a", "2"],
      ["b", "3"],
    ]);
  });

  it("are accepted as Headers", () => {
    const headers = PlainHeaders.received({ ":path": "/", a: "1", "set-cookie": ["c", "d"] });
    expect(headers).toBeInstanceOf(Headers);
    expect([...new Headers(headers)]).toEqual([
      ["a", "1"],
      ["set-cookie", "c"],
      ["set-cookie", "d"],
    ]);
    const seen: unknown[] = [];
    headers.forEach((each, key, parent) => {
      seen.push(each, key, parent === headers);
    });
    expect(seen).toEqual(["1", "a", true, "c", "set-cookie", true, "d", "set-cookie", true]);
  });
});

describe("headers for HTTP/2", () => {
  it.each([PlainHeaders.toSend({ "content-type": "x" }), new Headers({ "content-type": "x" })])(
    "keep values apart that cannot be joined, and omit headers that HTTP/2 forbids",
    (headers) => {
      headers.set("connection", "close");
      expect(toNodeHeaders(headers)).toEqual({ "content-type": "x" });
      headers.append("set-cookie", "c");
      headers.append("set-cookie", "d");
      headers.append("set-cookie", "e");
      expect(toNodeHeaders(headers)).toEqual({ "content-type": "x", "set-cookie": ["c", "d", "e"] });
    },
  );
});
