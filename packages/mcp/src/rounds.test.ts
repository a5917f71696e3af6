import { expect, test } from "vitest";
import { fulfil } from "./rounds.ts";
import type { Json } from "./testing/parts.ts";

const SAMPLING = { method: "sampling/createMessage", params: { maxTokens: 1 } };
const asking = (requests: Json, requestState?: string) => ({
  resultType: "input_required",
  inputRequests: requests,
  ...(requestState === undefined ? {} : { requestState }),
});

/** Runs a call. The first round has the result `first`, and each further round has the next result of `further`. */
function run(first: Json, further: Json[], capabilities: Json = { sampling: {} }) {
  const asked: [string, Json][] = [];
  const repeated: Json[] = [];
  const abandoned: Json[] = [];
  const result = fulfil(first, {
    client: {
      capabilities,
      ask: async (method, params) => {
        asked.push([method, params]);
        return { of: method };
      },
    },
    admit: async () => {},
    again: async (answers) => {
      repeated.push(answers);
      return further.shift() ?? first;
    },
    abandon: ({ requestState }) => abandoned.push(requestState),
  });
  return { result, asked, repeated, abandoned };
}

test("a result that requires no input is returned at once", async () => {
  const { result, repeated } = run({ content: [] }, []);
  expect(await result).toEqual({ content: [] });
  expect(repeated).toEqual([]);
});

test("each round asks the client, and repeats the call with the answers and the server's state", async () => {
  const rounds = [asking({ two: SAMPLING }), { content: ["done"] }];
  const { result, asked, repeated } = run(asking({ one: SAMPLING }, "state 1"), rounds);
  expect(await result).toEqual({ content: ["done"] });
  expect(asked).toEqual([
    ["sampling/createMessage", { maxTokens: 1 }],
    ["sampling/createMessage", { maxTokens: 1 }],
  ]);
  const answer = { of: "sampling/createMessage" };
  expect(repeated).toEqual([
    { inputResponses: { one: answer }, requestState: "state 1" },
    { inputResponses: { two: answer } },
  ]);
});

test("a client is asked only for its declared capabilities", async () => {
  const { result, asked, abandoned } = run(asking({ one: { method: "roots/list" } }, "open"), []);
  await expect(result).rejects.toMatchObject({ code: -32603, data: { requiredCapabilities: { roots: {} } } });
  expect(asked).toEqual([]);
  // The proxy has ended the call that the server held open.
  expect(abandoned).toEqual(["open"]);
});

test("an elicitation by address needs its own declaration, and gets an id", async () => {
  const request = asking({
    one: { method: "elicitation/create", params: { mode: "url", url: "https://a.example" } },
  });
  const { result, asked } = run(request, [{ content: [] }], { elicitation: { url: {} } });
  await result;
  expect(asked[0]?.[1]).toMatchObject({ mode: "url", elicitationId: expect.any(String) });
  const formOnly = run(request, [], { elicitation: {} });
  await expect(formOnly.result).rejects.toMatchObject({
    data: { requiredCapabilities: { elicitation: { url: {} } } },
  });
});

test("a server that asks without an end is refused", async () => {
  const { result, asked } = run(asking({ one: SAMPLING }), []);
  await expect(result).rejects.toMatchObject({ data: { reason: "LIMIT_EXCEEDED" } });
  expect(asked).toHaveLength(8);
});
