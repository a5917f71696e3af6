import fc from "fast-check";
import { expect, test } from "vitest";
import { TopMembers } from "./top-members.ts";

/** Feeds a text to TopMembers in pieces of `bytes` bytes. Returns the `id`, and whether it found a `method`. */
function found(text: string, bytes = 1) {
  const members = new TopMembers();
  const all = new TextEncoder().encode(text);
  for (let at = 0; at < all.length; at += bytes) members.feed(all.subarray(at, at + bytes));
  return [members.id, members.hasMethod];
}

test.each<[string, string | number | undefined, boolean]>([
  ['{"jsonrpc":"2.0","id":7,"result":{"id":8}}', 7, false],
  ['{"result":{"content":[{"id":1,"text":"\\"id\\":2"}]},"jsonrpc":"2.0","id":3}', 3, false],
  ['{"result":"{\\\\\\"id\\\\\\":9}","id":"listen:4"}', "listen:4", false],
  [' { "id" : -1.5e2 , "error" : {} } ', -150, false],
  ['{"id":1,"id":2}', 2, false],
  ['{"\\u0069d":5}', 5, false],
  ['{"id":5,"method":"roots/list","params":{}}', 5, true],
  ['{"method":"notifications/message","params":{"id":1}}', undefined, true],
  ['{"id":null}', undefined, false],
  ['{"id":{"a":1}}', undefined, false],
  ['{"id":["",""]}', undefined, false],
  [`{"id":"${"x".repeat(500)}"}`, undefined, false],
  ['[{"id":1}]', undefined, false],
  ["not JSON at all, id: 1", undefined, false],
  ["", undefined, false],
])("in %j the id is %j", (text, id, hasMethod) => {
  expect(found(text)).toEqual([id, hasMethod]);
});

test("the id equals that of JSON.parse, for any chunks", () => {
  const message = fc.dictionary(fc.constantFrom("id", "method", "a", '"', "\\"), fc.jsonValue(), {
    maxKeys: 4,
  });
  fc.assert(
    fc.property(message, fc.integer({ min: 1, max: 9 }), (members, bytes) => {
      const { id } = members;
      const isId = typeof id === "number" || (typeof id === "string" && JSON.stringify(id).length < 40);
      fc.pre(isId || typeof id !== "string");
      expect(found(JSON.stringify(members), bytes)).toEqual([
        isId ? JSON.parse(JSON.stringify(id)) : undefined,
        Object.hasOwn(members, "method"),
      ]);
    }),
  );
});
