import { freePorts } from "depute/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type GrpcRefusal, PublishedGrpc } from "./foreign-grpc.ts";

let platform: TestPlatform;
let grpc: PublishedGrpc;
let ownPort = 0;
const open: PublishedGrpc[] = [];

beforeAll(async () => {
  [ownPort = 0] = await freePorts(1);
  platform = await startPlatform([
    ...["--nekte-hosts", "agents.example"],
    ...["--nekte-ports", `second=${ownPort}`],
    ...["--public-url", "http://depute.example:8080"],
  ]);
  grpc = new PublishedGrpc(platform.url);
  open.push(grpc);
  for (const id of ["first", "second"]) {
    await introduce(platform, id, [["echo"]]);
    platform.work(id, async (input) => ({ output: { by: id, input } }));
  }
});
afterAll(async () => {
  for (const client of open) client.close();
  await platform.stop();
});

const input = Buffer.from("{}");

/** Returns the id of the agent that a client's calls reach. */
async function reached(url: string, authority?: string, headers: Record<string, string> = {}) {
  const client = new PublishedGrpc(url, authority);
  open.push(client);
  return (await client.call("Discover", { level: 0 }, headers)).agent;
}

describe("an agent is addressed over gRPC", () => {
  test.each([
    ["localhost", "first.localhost"],
    ["a port in the authority", "first.localhost:50051"],
    ["the public URL's host", "first.depute.example"],
    ["a host of the setting", "first.agents.example:80"],
  ])("by its virtual host: %s", async (_, authority) => {
    expect(await reached(platform.url, authority)).toBe("first");
  });

  test("by its own port, for any authority", async () => {
    const url = `http://127.0.0.1:${ownPort}`;
    expect(await reached(url)).toBe("second");
    expect(await reached(url, "first.localhost")).toBe("second");
    const client = new PublishedGrpc(url);
    open.push(client);
    const [end] = (await client.delegate({ task: { id: "there", desc: "x", timeout_ms: 20_000 } })).slice(-1);
    expect(JSON.parse(end.complete.output.compact)).toEqual({ by: "second", input: null });
    // This port serves no other service of the platform.
    const other = await fetch(`${url}/depute.registry.v1.AgentService/ListAgents`, { method: "POST" });
    expect(other.status).toBe(404);
  });

  test("by metadata, with priority over the virtual host", async () => {
    expect(await reached(platform.url, "first.localhost", { "nekte-agent": "second" })).toBe("second");
  });

  test.each(["localhost", "elsewhere.example", "first.elsewhere.example"])(
    "all agents are addressed by %s",
    async (authority) => {
      expect(await reached(platform.url, authority)).toBe("depute");
    },
  );
});

describe("gaps of the published proto", () => {
  test("a context is requested and revoked by its id alone", async () => {
    const envelope = { id: "by id", data: Buffer.from('{"n":1}'), ttl_s: 60 };
    expect(await grpc.call("Context", { action: "share", envelope })).toMatchObject({ status: "stored" });
    const contextFound = await grpc.call("Context", { action: "request", envelope: { id: "by id" } });
    expect(JSON.parse(contextFound.envelope.data)).toEqual({ n: 1 });
    expect(await grpc.call("Context", { action: "revoke", envelope: { id: "by id" } })).toMatchObject({
      status: "revoked",
    });
  });

  test("zero values of a client count as absent members", async () => {
    const headers = { "nekte-agent": "first" };
    const zeros = { max_tokens: 0, detail_level: "" };
    const filter = { category: "", query: "", id: "", top_k: 0, threshold: 0 };
    expect((await grpc.call("Discover", { level: 0, filter }, headers)).refs).toHaveLength(1);
    const invoked = await grpc.call("Invoke", { cap: "echo", h: "", input, budget: zeros }, headers);
    expect(invoked).toMatchObject({ resolved_level: "compact" });
    const budget = { max_tokens: 40, detail_level: "" };
    const context = {
      id: "",
      data: Buffer.from("1"),
      compression: "",
      permissions: { forward: false, persist: false, derive: false },
      ttl_s: 60,
      budget_hint: 0,
    };
    const task = { id: "zeros", desc: "x", timeout_ms: 20_000, budget };
    const events = await grpc.delegate({ task, context }, headers);
    expect(events.map(({ event }) => event)).toEqual(["complete"]);
    expect(
      await grpc.call("Verify", { task_id: "zeros", checks: ["hash"], budget: zeros }, headers),
    ).toMatchObject({
      task_id: "zeros",
    });
    expect(await grpc.call("TaskCancel", { task_id: "zeros", reason: "" }, headers).catch(codes)).toEqual([
      9,
      "-32010",
    ]);
  });
});

const codes = ({ code, nekteCode }: GrpcRefusal) => [code, nekteCode];

describe("a refusal carries NEKTE's code", () => {
  test.each<[string, string, object, Record<string, string>, number, string]>([
    ["of a method", "TaskStatus", { task_id: "never" }, {}, 5, "-32009"],
    ["of the contract", "TaskStatus", { task_id: "" }, {}, 3, "-32602"],
    ["of credentials", "TaskStatus", { task_id: "x" }, { authorization: "Bearer nobody" }, 16, "-32050"],
    ["of a web page", "TaskStatus", { task_id: "x" }, { origin: "https://page.example" }, 7, "-32051"],
    ["of a length", "Invoke", { cap: "echo", input: Buffer.alloc(4_194_304) }, {}, 8, "-32056"],
  ])("%s", async (_, method, request, headers, code, nekteCode) => {
    expect(await grpc.call(method, request, headers).catch(codes)).toEqual([code, nekteCode]);
  });

  test.each([
    ["on the platform's authority", () => grpc],
    ["on a virtual host", () => new PublishedGrpc(platform.url, "first.localhost")],
    ["on a port of its own", () => new PublishedGrpc(`http://127.0.0.1:${ownPort}`)],
  ])("of an unknown method of NEKTE, %s", async (_, clientOf) => {
    const client = clientOf();
    open.push(client);
    expect(await client.unknown("/nekte.v1.Nekte/Introspect").catch(codes)).toEqual([12, "-32601"]);
  });

  test("of an encoding", async () => {
    const packed = new PublishedGrpc(platform.url, "first.localhost", {
      "grpc.default_compression_algorithm": 1,
    });
    open.push(packed);
    expect(await packed.call("TaskStatus", { task_id: "x" }).catch(codes)).toEqual([12, "-32601"]);
  });

  test("of a delegation", async () => {
    const [none, unnamed] = [
      grpc.delegate({ task: { id: "x", desc: "x", timeout_ms: 1000 } }, { "nekte-agent": "nobody" }),
      grpc.delegate({ task: { id: "", desc: "x", timeout_ms: 1000 } }, { "nekte-agent": "first" }),
    ];
    expect(await none.catch(codes)).toEqual([5, "-32053"]);
    expect(await unnamed.catch(codes)).toEqual([3, "-32602"]);
  });
});
