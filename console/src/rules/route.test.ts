import fc from "fast-check";
import { expect, test } from "vitest";
import { hashOf, PAGES, placeOf } from "./route.ts";

test.each([
  ["", { page: "overview", id: "", query: {} }],
  ["#/nowhere/x", { page: "overview", id: "", query: {} }],
  ["#/tasks", { page: "tasks", id: "", query: {} }],
  ["#/tasks/a%2Fb?agent=x", { page: "tasks", id: "a/b", query: { agent: "x" } }],
  ["#/tasks/%E0%A4%A", { page: "tasks", id: "", query: {} }],
])("%s is a place", (hash, place) => {
  expect(placeOf(hash)).toEqual(place);
});

test("every place has an address that is read back as the same place", () => {
  const id = fc.string({ unit: "grapheme" }).filter((text) => text.isWellFormed());
  const query = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ minLength: 1 }));
  fc.assert(
    fc.property(fc.constantFrom(...PAGES), id, query, (page, id, query) => {
      expect(placeOf(hashOf({ page, id, query }))).toEqual({ page, id, query: { ...query } });
    }),
  );
});
