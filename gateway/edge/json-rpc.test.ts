import { DeputeError, ErrorReason } from "@depute/core";
import { describe, expect, test } from "vitest";
import { errorTable } from "./error-table.ts";
import { WireFault } from "./fault.ts";
import {
  answerJsonRpc,
  type CallNote,
  EventStream,
  type JsonRpcEndpoint,
  type JsonRpcMethod,
  MAX_BATCH,
} from "./json-rpc.ts";
import type { WireCall } from "./wire-call.ts";

const CALL: WireCall = {
  asCaller: {},
  aside: {},
  viewer: "",
  signal: new AbortController().signal,
  requestId: "req-1",
  wasPresented: () => false,
  credentialsDigest: "",
  takesEvents: true,
};

/** Creates an endpoint whose methods record their arguments. */
function endpoint() {
  const ran: unknown[] = [];
  let remaining = 0;
  const knownEndpoint: JsonRpcEndpoint = {
    methods: new Map<string, JsonRpcMethod>([
      [
        "echo",
        async (params) => {
          ran.push(params);
          return { echo: (params ?? null) as never };
        },
      ],
      [
        "refuse",
        async () => {
          throw new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", { metadata: { task: "t" } });
        },
      ],
      [
        "fields",
        async () => {
          const violations = [
            { field: "/a/b", description: "is wrong" },
            { field: "", description: "all of it" },
          ];
          throw new DeputeError(ErrorReason.INVALID_REQUEST, "two faults", { violations });
        },
      ],
      [
        "own data",
        async () => {
          throw new WireFault(DeputeError.received(ErrorReason.VERSION_MISMATCH, "stale"), {
            current_hash: "x",
          });
        },
      ],
      [
        "crash",
        async () => {
          throw new TypeError("secret-of-the-house");
        },
      ],
      [
        "internal",
        async () => {
          throw new DeputeError(ErrorReason.INTERNAL, "secret-of-the-house");
        },
      ],
      [
        "anonymous",
        async () => {
          throw new DeputeError(ErrorReason.UNAUTHENTICATED, "who are you");
        },
      ],
      [
        "stream",
        async () => {
          ran.push("stream");
          const events = (async function* () {
            try {
              yield { event: "e", data: 1 };
            } finally {
              remaining++;
            }
          })();
          return new EventStream(events);
        },
      ],
    ]),
    errors: errorTable({}),
    streaming: new Set(["stream"]),
  };
  const notes: CallNote[] = [];
  const ask = (body: unknown) =>
    answerJsonRpc(
      knownEndpoint,
      body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      CALL,
      (note) => notes.push(note),
    );
  return { ask, ran, notes, left: () => remaining };
}

const rpc = (method: string, rest: object = { id: 1 }) => ({ jsonrpc: "2.0", method, ...rest });

describe("one call", () => {
  test.each([
    ["a number", 1],
    ["a fraction", 1.5],
    ["a text", "one"],
    ["null", null],
    ["zero", 0],
    ["an empty text", ""],
  ])("is answered with its id, %s", async (_, id) => {
    expect(await endpoint().ask(rpc("echo", { id, params: { a: [1] } }))).toEqual({
      kind: "json",
      unauthenticated: false,
      body: { jsonrpc: "2.0", id, result: { echo: { a: [1] } } },
    });
  });

  test.each(["1795868652409123456", "-9223372036854775808", "12345678901234567890123", "1e30"])(
    "is answered with an id that JavaScript would round: %s",
    async (id) => {
      const call = (method: string) =>
        `{"jsonrpc":"2.0","method":"${method}","params":{"a":[{"id":9007199254740993}]},"id":${id}}`;
      const { ask } = endpoint();
      const texts = await Promise.all(
        [
          call("echo"),
          call("nothing"),
          `{"id":${id}}`,
          `[${call("echo")},${call("refuse").replace(id, "7")}]`,
        ].map(async (body) => JSON.stringify((await ask(body)) as object)),
      );
      for (const text of texts) expect(text).toContain(`"jsonrpc":"2.0","id":${id},`);
      expect(texts[3]).toContain('"jsonrpc":"2.0","id":7,');
    },
  );

  test("of a batch is answered with its own id, even if JavaScript rounds the ids to one number", async () => {
    const call = (id: string, params = "{}") =>
      `{"jsonrpc":"2.0","id":${id},"method":"echo","params":${params}}`;
    const { ask } = endpoint();
    const replies = async (body: string) => JSON.stringify((await ask(body)) as object);
    const two = await replies(`[${call("1795868652409123301")},${call("1795868652409123302")}]`);
    expect(two).toMatch(/"id":1795868652409123301,.*"id":1795868652409123302,/);
    // The second number does not belong to the envelope, so neither of the two can be told from the other.
    const nested = await replies(call("1795868652409123301", '{"a":{"id":1795868652409123302}}'));
    expect(nested).toContain(`"id":${Number("1795868652409123301")},`);
  });

  test("without parameters passes none", async () => {
    const { ask, ran } = endpoint();
    await ask(rpc("echo"));
    expect(ran).toEqual([undefined]);
  });

  test("can have its parameters in an array, which the method interprets", async () => {
    const { ask, ran } = endpoint();
    await ask(rpc("echo", { id: 1, params: [1, 2] }));
    expect(ran).toEqual([[1, 2]]);
  });

  test("without an id is a notification: it runs without an answer", async () => {
    const { ask, ran } = endpoint();
    expect(await ask(rpc("echo", { params: { a: 1 } }))).toEqual({ kind: "nothing", unauthenticated: false });
    expect(ran).toEqual([{ a: 1 }]);
    expect(await ask(rpc("refuse", {}))).toEqual({ kind: "nothing", unauthenticated: false });
    expect(await ask(rpc("nothing", {}))).toEqual({ kind: "nothing", unauthenticated: false });
    expect(await ask(rpc("anonymous", {}))).toEqual({ kind: "nothing", unauthenticated: true });
  });

  test("a streaming method is answered with its events; as a notification its stream is closed", async () => {
    const { ask, ran, left } = endpoint();
    expect((await ask(rpc("stream"))).kind).toBe("events");
    expect(await ask(rpc("stream", {}))).toEqual({ kind: "nothing", unauthenticated: false });
    expect(ran).toEqual(["stream", "stream"]);
    // A generator that is closed before it begins to run never reaches its `finally` block.
    expect(left()).toBe(0);
  });
});

describe("a refusal", () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

  test.each([
    ["malformed JSON", "{", -32700, null],
    ["an empty body", "", -32700, null],
    ["bytes that are not UTF-8", Buffer.from([0x22, 0xff, 0x22]), -32700, null],
    ["a byte order mark", "\ufeff{}", -32700, null],
    ["half a surrogate pair", '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700, null],
    ["a number above every double", '{"jsonrpc":"2.0","id":1e400,"method":"echo"}', -32700, null],
    ["nesting too deep", `{"jsonrpc":"2.0","id":1,"method":"echo","params":${deep(60)}}`, -32600, null],
    ["a text", '"hello"', -32600, null],
    ["a number", "1", -32600, null],
    ["null", "null", -32600, null],
    ["no version", { id: 7, method: "echo" }, -32600, 7],
    ["another version", { jsonrpc: "1.0", id: 7, method: "echo" }, -32600, 7],
    ["no method", { jsonrpc: "2.0", id: "x" }, -32600, "x"],
    ["a method that is a number", { jsonrpc: "2.0", id: 7, method: 1 }, -32600, 7],
    ["an empty method", rpc("", { id: 7 }), -32600, 7],
    ["a method that is too long", rpc("x".repeat(129), { id: 7 }), -32600, 7],
    ["an id that is an object", rpc("echo", { id: {} }), -32600, null],
    ["an id that is true", rpc("echo", { id: true }), -32600, null],
    ["an id that is too long", rpc("echo", { id: "x".repeat(257) }), -32600, null],
    ["an extra member", rpc("echo", { id: 7, surprise: 1 }), -32600, 7],
    ["parameters that are a number", rpc("echo", { id: 7, params: 5 }), -32600, 7],
    ["parameters that are null", rpc("echo", { id: 7, params: null }), -32600, 7],
    ["an unknown method", rpc("nothing", { id: 7 }), -32601, 7],
    ["a method with the name of an inherited member", rpc("constructor", { id: 7 }), -32601, 7],
  ])("%s", async (_, body, code, id) => {
    const { ask, ran } = endpoint();
    expect(await ask(body)).toMatchObject({
      kind: "json",
      unauthenticated: false,
      body: { jsonrpc: "2.0", id, error: { code } },
    });
    expect(ran).toEqual([]);
    // A failed request does not affect the next one.
    expect(await ask(rpc("echo"))).toMatchObject({ body: { result: { echo: null } } });
  });

  test("names the unknown method, and says why", async () => {
    const data = { detail: "the method does not exist at this address", metadata: { method: "nothing" } };
    expect(await endpoint().ask(rpc("nothing"))).toMatchObject({ body: { error: { data } } });
  });

  test.each([
    [
      "refuse",
      {
        code: -32053,
        message: "NOT_FOUND",
        data: { reason: "TASK_NOT_FOUND", detail: "no such task", metadata: { task: "t" } },
      },
    ],
    [
      "fields",
      {
        code: -32602,
        message: "Invalid params: /a/b: is wrong; all of it",
        data: {
          reason: "INVALID_REQUEST",
          detail: "two faults",
          metadata: {},
          violations: [
            { path: "/a/b", message: "is wrong" },
            { path: "", message: "all of it" },
          ],
        },
      },
    ],
    ["own data", { code: -32055, message: "WRONG_STATE", data: { current_hash: "x" } }],
    [
      "crash",
      {
        code: -32603,
        message: "Internal error",
        data: { reason: "INTERNAL", metadata: { request_id: "req-1" } },
      },
    ],
    [
      "internal",
      {
        code: -32603,
        message: "Internal error",
        data: { reason: "INTERNAL", metadata: { request_id: "req-1" } },
      },
    ],
  ])("an exception of method %s becomes the method's error", async (method, error) => {
    expect(await endpoint().ask(rpc(method))).toEqual({
      kind: "json",
      unauthenticated: false,
      body: { jsonrpc: "2.0", id: 1, error },
    });
  });

  test("reports a caller without credentials to the HTTP layer", async () => {
    expect(await endpoint().ask(rpc("anonymous"))).toMatchObject({
      unauthenticated: true,
      body: { error: { code: -32050, message: "UNAUTHENTICATED" } },
    });
  });

  test("notes every call, with its exception", async () => {
    const { ask, notes } = endpoint();
    await ask([rpc("echo"), rpc("crash"), 5]);
    expect(notes).toEqual([
      { method: "echo", code: 0 },
      { method: "crash", code: -32603, thrown: expect.any(TypeError) },
      { method: "", code: -32600 },
    ]);
  });
});

describe("a batch", () => {
  test("is answered in its order, without its notifications, and one bad call affects no other", async () => {
    const { ask, ran } = endpoint();
    const batch = [
      rpc("echo", { id: 1, params: { n: 1 } }),
      rpc("echo", { params: { n: 2 } }),
      5,
      rpc("refuse", { id: "r" }),
    ];
    expect(await ask(batch)).toMatchObject({
      kind: "json",
      body: [
        { id: 1, result: { echo: { n: 1 } } },
        { id: null, error: { code: -32600 } },
        { id: "r", error: { code: -32053 } },
      ],
    });
    expect(ran).toEqual([{ n: 1 }, { n: 2 }]);
  });

  test("of notifications alone is not answered", async () => {
    expect(await endpoint().ask([rpc("echo", {}), rpc("refuse", {})])).toMatchObject({ kind: "nothing" });
  });

  test.each([
    ["that is empty", []],
    ["that is too long", Array(MAX_BATCH + 1).fill(rpc("echo"))],
  ])("%s is refused completely", async (_, batch) => {
    const { ask, ran } = endpoint();
    expect(await ask(batch)).toMatchObject({ body: { id: null, error: { code: -32600 } } });
    expect(ran).toEqual([]);
  });

  test("of the maximum size is served", async () => {
    const { ask, ran } = endpoint();
    await ask(Array(MAX_BATCH).fill(rpc("echo")));
    expect(ran).toHaveLength(MAX_BATCH);
  });

  test("cannot contain streaming calls, and no call of it runs", async () => {
    const { ask, ran } = endpoint();
    expect(await ask([rpc("stream"), rpc("stream", {})])).toMatchObject({
      body: [{ id: 1, error: { code: -32600 } }],
    });
    expect(ran).toEqual([]);
  });
});
