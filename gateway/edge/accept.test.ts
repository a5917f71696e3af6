import { expect, test } from "vitest";
import { accepts } from "./wire-call.ts";

test.each<[string | undefined, boolean]>([
  [undefined, true],
  ["", true],
  ["*/*", true],
  ["text/event-stream", true],
  ["application/json, text/event-stream", true],
  ["application/json, */*;q=0.1", true],
  ["Text/*", true],
  ["application/json", false],
  ["application/json; charset=utf-8, application/problem+json", false],
  ["*/*, text/event-stream;q=0", false],
  ["text/*;q=0, */*", false],
])("accept %s allows an event stream: %s", (accept, expected) => {
  expect(accepts(accept, "text/event-stream")).toBe(expected);
});

test.each<[string, boolean]>([
  ["application/schema+json", true],
  ["application/json", true],
  ["application/*", true],
  ["application/xml", false],
  ["application/json, application/schema+json;q=0", false],
  ["text/json", false],
])("accept %s allows a type that is made of JSON: %s", (accept, expected) => {
  expect(accepts(accept, "application/schema+json; charset=utf-8")).toBe(expected);
});
