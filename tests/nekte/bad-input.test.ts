import { describe, expect, test } from "vitest";
import { call, error, json, result } from "../gateway/platform.ts";
import { Scene, work } from "./scene.ts";

const scene = new Scene();
const { countTasks, nekte } = scene;

describe("bad input", () => {
  const ok = () => result(nekte("nekte.discover", { level: 0, filter: { id: "sentiment" } }));
  const delegation = work();

  test.each([
    ["malformed JSON", "{", -32700, undefined],
    ["an unknown method", call("nekte.nothing"), -32601, undefined],
    ["an unknown topic", call("nekte.introspect", { topic: "weather" }), -32602, "/topic"],
    ["no parameters", call("nekte.discover"), -32602, "/level"],
    ["parameters in an array", call("nekte.discover", [0]), -32602, ""],
    ["a level that is a text", call("nekte.discover", { level: "0" }), -32602, "/level"],
    ["a level that does not exist", call("nekte.discover", { level: 3 }), -32602, "/level"],
    ["no input", call("nekte.invoke", { cap: "sentiment" }), -32602, "/in"],
    [
      "an input outside the schema",
      call("nekte.invoke", { cap: "sentiment", in: { text: 1 } }),
      -32602,
      "/in/text",
    ],
    ["a capability that is too long", call("nekte.invoke", { cap: "x".repeat(194), in: {} }), -32602, "/cap"],
    ["an unknown capability", call("nekte.invoke", { cap: "nothing", in: {} }), -32002, undefined],
    ["an unknown agent's capability", call("nekte.invoke", { cap: "nobody/x", in: {} }), -32053, undefined],
    [
      "a budget of zero",
      call("nekte.invoke", { cap: "long", in: {}, budget: { max_tokens: 0, detail_level: "full" } }),
      -32602,
      "/budget/max_tokens",
    ],
    ["no task", call("nekte.delegate", { context: delegation.context }), -32602, "/task"],
    ["no time", call("nekte.delegate", { task: { id: "t", desc: "x" } }), -32602, "/task/timeout_ms"],
    [
      "a timeout of zero",
      call("nekte.delegate", { task: { id: "t", desc: "x", timeout_ms: 0 } }),
      -32602,
      "/task/timeout_ms",
    ],
    [
      "an id that is too long",
      call("nekte.delegate", { task: { id: "x".repeat(129), desc: "x", timeout_ms: 1 } }),
      -32602,
      "/task/id",
    ],
    ["no task id", call("nekte.task.cancel", {}), -32602, "/task_id"],
    [
      "input that nests too deep for the tasks service",
      call("nekte.invoke", { cap: "long", in: nested(35) }),
      -32056,
      undefined,
    ],
  ])("%s", async (_, body, code, path) => {
    const before = await countTasks();
    const refused = await error(scene.platform.post("/nekte", body, { accept: "application/json" }));
    expect(refused.code).toBe(code);
    if (path !== undefined) expect(refused.data.violations[0].path).toBe(path);
    expect(await countTasks()).toBe(before);
    await ok();
  });

  test.each([["x"], ["-1"], ["1e3"], ["9".repeat(16)]])("Last-Event-ID %s", async (id) => {
    const before = await countTasks();
    const refused = await scene.refused(work(), undefined, { "last-event-id": id });
    expect(refused.code).toBe(-32602);
    expect(await countTasks()).toBe(before);
  });

  test("a delegation in a batch is refused, and creates nothing", async () => {
    const before = await countTasks();
    const batch = [call("nekte.delegate", work(), 1), call("nekte.discover", { level: 0 }, 2)];
    expect(await json(scene.platform.post("/nekte/nlp-worker", batch))).toMatchObject([
      { id: 1, error: { code: -32600 } },
      { id: 2, result: { agent: "nlp-worker" } },
    ]);
    expect(await countTasks()).toBe(before);
  });

  test.each([
    ["text/plain", 415],
    ["application/jsonp", 415],
    ["", 415],
    ["application/json; charset=utf-8", 200],
    ["Application/JSON", 200],
  ])("content type %j is answered %i", async (type, expectedStatus) => {
    const body = Buffer.from(JSON.stringify(call("nekte.discover", { level: 0 })));
    const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
    const response = await fetch(`${scene.platform.url}/nekte`, { method: "POST", headers, body });
    expect(response.status).toBe(expectedStatus);
  });

  test("a body that is too long is refused, by its stated and by its received length", async () => {
    const body = JSON.stringify(call("nekte.invoke", { cap: "long", in: { text: "x".repeat(4_194_304) } }));
    expect(await error(scene.platform.post("/nekte", body), 413)).toMatchObject({ code: -32056 });
    const chunks = new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 65_536)
          controller.enqueue(Buffer.from(body.slice(at, at + 65_536)));
        controller.close();
      },
    });
    const streamed = fetch(`${scene.platform.url}/nekte`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: chunks,
      duplex: "half",
    } as RequestInit);
    // The platform may close the connection before the client has sent the whole body. The test counts a closed
    // connection as status 413.
    const status = await streamed.then((response) => response.status).catch(() => 413);
    expect(status).toBe(413);
    await ok();
  });

  test.each([
    ["GET", "/nekte", 405],
    ["PUT", "/nekte/nlp-worker", 405],
    ["POST", "/.well-known/nekte.json", 405],
    ["POST", "/nekte/a/b", 404],
  ])("%s %s is answered %i", async (method, path, expectedStatus) => {
    expect((await fetch(`${scene.platform.url}${path}`, { method })).status).toBe(expectedStatus);
  });
});

function nested(levels: number): object {
  let inner: object = {};
  for (let level = 1; level < levels; level++) inner = { a: inner };
  return inner;
}
