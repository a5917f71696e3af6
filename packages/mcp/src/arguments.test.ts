import { describe, expect, test } from "vitest";
import { bench, type Json, refusal, text, token } from "./testing/parts.ts";

/** PLAIN is a schema that the proxy checks itself. For COMBINED, the proxy uses the isolated schema check. */
const PLAIN = {
  type: "object",
  properties: { of: { type: "string", maxLength: 3 } },
  required: ["of"],
  additionalProperties: false,
};
const COMBINED = { type: "object", anyOf: [{ required: ["of"] }, { required: ["all"] }] };

const answers = (inputSchema: object) => ({
  "tools/list": () => ({ tools: ["fixed", "paid"].map((name) => ({ name, inputSchema })) }),
  "tools/call": ({ name }: Json) => text(`${name} was called`),
});
const calls = ({ received }: { received: readonly { method: string }[] }) =>
  received.filter(({ method }) => method === "tools/call").length;

describe("arguments that fit the tool's input schema", () => {
  test.each([
    ["a plain schema, without another check", PLAIN, 0],
    ["any other schema, after a check in isolation", COMBINED, 1],
    ["a schema of draft-07", { $schema: "http://json-schema.org/draft-07/schema#", ...COMBINED }, 1],
  ])("are sent to the server: %s", async (_, schema, checks) => {
    const { call, checkedSchemas } = bench(answers(schema));
    expect(await call("fixed", { of: "one" })).toEqual(text("fixed was called"));
    expect(checkedSchemas).toHaveLength(checks);
  });
});

describe("arguments outside the schema are not sent to the server", () => {
  test.each([
    ["a missing member", PLAIN, {}, "/arguments", "must have required property 'of'"],
    ["another type", PLAIN, { of: 1 }, "/arguments/of", "must be string"],
    ["a long text", PLAIN, { of: "long" }, "/arguments/of", "must NOT have more than 3 characters"],
    ["an unknown member", PLAIN, { of: "one", x: 1 }, "/arguments", "must NOT have additional properties"],
    ["a value that is not an object", PLAIN, [], "/arguments", "must be object"],
    ["null", PLAIN, null, "/arguments", "must be object"],
    [
      "a value outside all alternatives",
      COMBINED,
      { x: 1 },
      "/arguments",
      "must have required property 'of'",
    ],
  ])("%s", async (_, schema, args, path, message) => {
    const started = bench(answers(schema));
    const params = { name: "fixed", arguments: args };
    const call = started.proxy.handle({ method: "tools/call", params, presentation: token("one") });
    const { code, data } = await refusal(call);
    expect({ code, data }).toMatchObject({ code: -32602, data: { reason: "INVALID_REQUEST" } });
    expect(data.violations[0]).toEqual({ path, message });
    expect(calls(started)).toBe(0);
  });

  test.each(["2025-03-26", "2025-06-18"])("revision %s gets an error", async (revision) => {
    const { proxy } = bench(answers(PLAIN));
    const params = { name: "fixed", arguments: {} };
    const call = proxy.handle({ method: "tools/call", params, presentation: token("one"), revision });
    expect(await refusal(call)).toMatchObject({ code: -32602 });
  });

  test.each(["2025-11-25", "2026-07-28"])("revision %s gets a result for the model", async (revision) => {
    const { proxy } = bench(answers(PLAIN));
    const params = { name: "fixed", arguments: {} };
    const call = proxy.handle({ method: "tools/call", params, presentation: token("one"), revision });
    expect(await call).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringContaining("must have required property 'of'") }],
      _meta: { "depute.dev/refusal": { reason: "INVALID_REQUEST", violations: [{ path: "/arguments" }] } },
    });
  });

  test("cost no budget", async () => {
    const started = bench(answers(PLAIN));
    const before = started.authoriser.budget;
    await refusal(started.call("paid", {}));
    expect(started.authoriser.budget).toBe(before);
  });

  test("reveal nothing of the schema to a caller without the capability", async () => {
    const { call } = bench(answers(PLAIN));
    expect(await refusal(call("fixed", {}, token("two")))).toMatchObject({ code: -32001 });
  });
});

test("are checked by the current schema: a changed definition has a new one", async () => {
  let schema: object = PLAIN;
  const { call, proxy } = bench({
    ...answers(PLAIN),
    "tools/list": () => ({ tools: [{ name: "fixed", inputSchema: schema }] }),
  });
  await call("fixed", { of: "one" });
  schema = { type: "object", required: ["more"] };
  await proxy.handle({ method: "tools/list", params: {}, presentation: token("one") });
  const { data } = await refusal(call("fixed", { of: "one" }));
  expect(data.violations).toEqual([{ path: "/arguments", message: "must have required property 'more'" }]);
});

describe("a schema that cannot be checked", () => {
  const foreign = { $schema: "http://json-schema.org/draft-04/schema#", type: "object", not: {} };

  test("refuses the call, and names the setting", async () => {
    const started = bench(answers(foreign));
    expect(await refusal(started.call("fixed", {}))).toMatchObject({
      code: -32603,
      data: { reason: "SCHEMA_INVALID", detail: expect.stringContaining('"checkArguments": false') },
    });
    expect(calls(started)).toBe(0);
  });

  test("is not checked if the tool's rule says so", async () => {
    const rule = { namespace: "data", action: "query", resource: "one", checkArguments: false };
    const { call, checkedSchemas } = bench(answers(foreign), { map: { tools: { fixed: rule } } });
    expect(await call("fixed", {})).toEqual(text("fixed was called"));
    expect(checkedSchemas).toEqual([]);
  });
});
