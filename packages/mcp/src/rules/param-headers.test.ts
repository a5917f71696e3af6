import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { headerFault, headersFor, paramHeadersOf } from "./param-headers.ts";

const REGION = [{ header: "mcp-param-region", path: ["region"] }];
const schemaOf = (property: object) => ({ type: "object", properties: { region: property } });

describe("the headers that a tool declares", () => {
  test.each([
    ["a text", schemaOf({ type: "string", "x-mcp-header": "Region" }), REGION],
    [
      "a member of an object",
      {
        properties: {
          at: { type: "object", properties: { zone: { type: "integer", "x-mcp-header": "Zone" } } },
        },
      },
      [{ header: "mcp-param-zone", path: ["at", "zone"] }],
    ],
    ["a number with fractions", schemaOf({ type: "number", "x-mcp-header": "Region" }), []],
    ["a name with a blank", schemaOf({ type: "string", "x-mcp-header": "my region" }), []],
    [
      "an element of a list",
      schemaOf({ type: "array", items: { type: "string", "x-mcp-header": "Region" } }),
      [],
    ],
    ["a value that is not a schema", undefined, []],
  ])("%s", (_, schema, headers) => {
    expect(paramHeadersOf(schema)).toEqual(headers);
  });
});

describe("a header of a call", () => {
  test.each([
    ["plain text", "eu-west", "eu-west"],
    ["text with blanks around", " eu", "=?base64?IGV1?="],
    ["text beyond ASCII", "köln", "=?base64?a8O2bG4=?="],
    ["text like an encoded value", "=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="],
    ["a whole number", 42, "42"],
    ["a flag", false, "false"],
  ])("repeats %s", (_, region, value) => {
    expect(headersFor(REGION, { region })).toEqual({ "mcp-param-region": value });
  });

  test("is absent without the argument, and then not expected", () => {
    expect(headersFor(REGION, { region: null })).toEqual({});
    expect(headerFault(REGION, {}, new Headers())).toBeUndefined();
  });

  test.each([
    ["missing", undefined, "is missing"],
    ["another value", "us", "differs"],
    ["Base64 without its padding", "=?base64?ZXU?=", "Base64"],
    ["other characters than Base64", "=?base64?Z!!1=?=", "Base64"],
  ])("is refused if it is %s", (_, value, fault) => {
    const headers = new Headers(value === undefined ? {} : { "Mcp-Param-Region": value });
    expect(headerFault(REGION, { region: "eu" }, headers)).toContain(fault);
  });

  test("is accepted in the form that this proxy writes", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.integer(), fc.boolean()), (region) => {
        fc.pre(typeof region !== "string" || region.isWellFormed());
        const headers = new Headers(headersFor(REGION, { region }));
        expect(headerFault(REGION, { region }, headers)).toBeUndefined();
      }),
    );
  });
});
