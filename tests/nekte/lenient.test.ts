import { afterAll, beforeAll, expect, test } from "vitest";
import { call, introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PublishedGrpc } from "./foreign-grpc.ts";
import { eventsIn, send } from "./plain-http.ts";

let platform: TestPlatform;
let grpc: PublishedGrpc;

beforeAll(async () => {
  platform = await startPlatform();
  grpc = new PublishedGrpc(platform.url);
  await introduce(platform, "worker", [["partly"]]);
  await platform.clients.agents.registerAgent({ requestId: "plain", agent: { id: "plain" } });
  platform.work("worker", async (input, { task }) => {
    if (task.capabilityId === "partly") return { output: { here: 1, gone: undefined } as never };
    return { output: { got: input } };
  });
});
afterAll(async () => {
  grpc.close();
  await platform.stop();
});

const ask = async (method: string, params: object, path = "/nekte/worker") =>
  JSON.parse((await send(`${platform.url}${path}`, call(method, params))).text);

test("unknown members are ignored at every level", async () => {
  const body = {
    ...call("nekte.delegate", {
      task: { id: "lenient", desc: "x", timeout_ms: 20_000, priority: 3 },
      context: {
        data: { n: 1 },
        permissions: { forward: false, persist: true, derive: true, resell: true },
        ttl_s: 60,
        origin: "elsewhere",
      },
      trace: { id: 7 },
    }),
    meta: { client: "newer" },
  };
  const events = eventsIn((await send(`${platform.url}/nekte/worker`, body)).text);
  expect(events.at(-1)?.data).toMatchObject({ out: { compact: { got: { n: 1 } } } });
});

test("a time to live can have a fraction, and lasts exactly that long", async () => {
  const permissions = { forward: false, persist: true, derive: true };
  const envelope = { id: "brief", data: 1, permissions, ttl_s: 0.25 };
  expect((await ask("nekte.context", { envelope })).result).toEqual({ id: "brief", status: "stored" });
  const longer = { id: "longer", data: 1, permissions, ttl_s: 900.5 };
  await ask("nekte.context", { envelope: longer });
  const request = (id: string) => ask("nekte.context", { action: "request", envelope: { id } });
  expect((await request("longer")).result).toEqual(longer);
  const { context } = await platform.clients.contexts.requestContext({
    name: { case: "externalId", value: "longer" },
  });
  const [from, until] = [context?.createTime, context?.expireTime].map(
    (time) => Number(time?.seconds) * 1000 + Number(time?.nanos) / 1e6,
  );
  expect((until ?? 0) - (from ?? 0)).toBe(900_500);
  while ((await request("brief")).error?.code !== -32004)
    await new Promise((resolve) => setImmediate(resolve));
});

test.each([
  ["/nekte/worker", { level: 0 }, "1.2.0"],
  ["/nekte/worker", { level: 0, filter: { query: "no such words" } }, "1.2.0"],
  ["/nekte/plain", { level: 2 }, "1"],
  ["/nekte", { level: 0, filter: { id: "none" } }, "0.2.0"],
])("`v` is present at %s for %j", async (path, params, v) => {
  expect((await ask("nekte.discover", params, path)).result.v).toBe(v);
  const agent = path.slice("/nekte/".length);
  const headers: Record<string, string> = agent === "" ? {} : { "nekte-agent": agent };
  expect((await grpc.call("Discover", params, headers)).version).toBe(v);
});

test("undefined members of a result are omitted", async () => {
  expect((await ask("nekte.invoke", { cap: "partly", in: {} })).result.out).toEqual({ here: 1 });
});

test.each([true, false])("a worker's input is the context's data (persist: %s)", async (persist) => {
  const context = {
    data: { a: [1, null] },
    permissions: { forward: false, persist, derive: true },
    ttl_s: 60,
  };
  const params = { task: { id: `input ${persist}`, desc: "x", timeout_ms: 20_000 }, context };
  const { text } = await send(`${platform.url}/nekte/worker`, call("nekte.delegate", params));
  expect(eventsIn(text).at(-1)?.data.out.compact).toEqual({ got: { a: [1, null] } });
});
