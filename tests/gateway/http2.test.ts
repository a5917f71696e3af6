import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, introduce, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
let session: ClientHttp2Session;
beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "worker");
  // The partial results together are larger than a connection's window, so the stream has to wait for its reader.
  platform.work("worker", async (_, { partial }) => {
    for (let n = 0; n < 8; n++) await partial({ text: "x".repeat(100_000) });
    return { output: "done" };
  });
  session = connect(platform.url);
});
afterAll(async () => {
  session.close();
  await platform.stop();
});

async function post(path: string, body: string, type = "application/json") {
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
  stream.on("error", () => {});
  stream.end(body);
  const [headers] = await once(stream, "response");
  let text = "";
  for await (const chunk of stream) text += chunk;
  return { status: headers[":status"], type: headers["content-type"], text };
}

test("clear-text HTTP/2 gives the same answers", async () => {
  const foundAnswer = await post("/nekte", JSON.stringify(call("nekte.discover", { level: 0 })));
  expect(foundAnswer).toMatchObject({ status: 200, type: "application/json" });
  expect(JSON.parse(foundAnswer.text)).toMatchObject({ result: { agent: "depute", caps: [] } });
  expect((await post("/nekte", "{}", "text/plain")).status).toBe(415);
  expect((await post("/nekte", `"${"x".repeat(4_194_304)}"`)).status).toBe(413);
});

test("clear-text HTTP/2 gives the same streams, however large", async () => {
  const budget = { max_tokens: 1_000_000, detail_level: "full" };
  const params = { task: { id: "t", desc: "x", timeout_ms: 10_000, budget } };
  const answer = await post("/nekte/worker", JSON.stringify(call("nekte.delegate", params)));
  expect(answer).toMatchObject({ status: 200, type: "text/event-stream" });
  const events = answer.text.split("\n\n").map((frame) => frame.split("\n")[1]);
  expect(events.filter((event) => event === "event: partial")).toHaveLength(8);
  expect(events.at(-2)).toBe("event: complete");
  expect(answer.text.endsWith("\n\n")).toBe(true);
});
