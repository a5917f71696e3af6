import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { startTestIssuer, type TestIssuer } from "@depute/service/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, type Json, startApart, startPlatform } from "../gateway/platform.ts";

/** The principal of an agent: an Ed25519 public key. */
const WORKER_KEY = `${"A".repeat(42)}M`;

let folder: string;
let issuer: TestIssuer;
let flags: string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-bearer-"));
  issuer = await startTestIssuer(Date.now);
  const file = join(folder, "identities.json");
  const identities = [
    { subject: "ada", principal: "ada@acme", organization: "acme" },
    { subject: "worker", principal: WORKER_KEY },
    { subject: "bob", principal: "bob@globex", organization: "globex" },
  ];
  writeFileSync(
    file,
    JSON.stringify({ issuers: [{ issuer: issuer.url, audiences: ["depute"], identities }] }),
  );
  flags = ["--auth", "required", "--identities-file", file];
});
afterAll(async () => {
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

const bearer = async (claims: object = {}) => ({
  authorization: `Bearer ${await issuer.sign({ ...claims })}`,
});

describe.each([
  ["one process", startPlatform],
  ["a gateway apart from the services", startApart],
])("a token of an issuer, at %s", (_, start) => {
  let platform: Awaited<ReturnType<typeof startApart | typeof startPlatform>>;
  let taskId: string;

  beforeAll(async () => {
    platform = await start(flags);
    const agent = { id: "echo", version: "1", principal: WORKER_KEY };
    await connect(
      "registry.v1.AgentService/RegisterAgent",
      { requestId: crypto.randomUUID(), agent },
      { sub: "worker" },
    );
    const created = await connect("tasks.v1.TaskService/CreateTask", {
      requestId: crypto.randomUUID(),
      draft: { agentId: "echo", description: "say it" },
    });
    taskId = created.task.id;
  }, 60_000);
  afterAll(() => platform.stop());

  /** Calls a method by Connect with JSON over HTTP/1.1. */
  async function connect(method: string, body: object, claims: object = {}): Promise<Json> {
    const answer = await platform.post(`/depute.${method}`, body, await bearer(claims));
    const document = (await answer.json()) as Json;
    if (!answer.ok) throw new Error(`${method}: ${JSON.stringify(document)}`);
    return document;
  }

  test("names the delegator and the organization of a task", async () => {
    const { task } = await connect("tasks.v1.TaskService/GetTask", { taskId });
    expect(task).toMatchObject({ delegator: "ada@acme", organization: "acme" });
  });

  test("counts over gRPC", async () => {
    const { task } = await platform.clients.tasks.getTask({ taskId }, { headers: await bearer() });
    expect(task).toMatchObject({ delegator: "ada@acme", organization: "acme" });
  });

  test("of another subject has the view of another principal", async () => {
    const refused = platform.clients.tasks.getTask({ taskId }, { headers: await bearer({ sub: "bob" }) });
    await expect(refused).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("counts over the HTTP wires", async () => {
    const body = call("nekte.discover", { level: 0 });
    const answer = await platform.post("/nekte/echo", body, await bearer());
    expect([answer.status, await answer.json()]).toMatchObject([200, { result: { caps: [] } }]);
    const hello = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const accept = { accept: "application/json, text/event-stream" };
    const mcp = await platform.post("/mcp", call("initialize", hello), { ...(await bearer()), ...accept });
    expect(mcp.status).toBe(200);
  });

  test.each<[string, string, () => Record<string, unknown>]>([
    ["expired", "expired", () => ({ exp: 1_700_000_000 })],
    ["for another audience", "audience", () => ({ aud: "other" })],
    ["of an unknown subject", "not_mapped", () => ({ sub: "eve" })],
  ])("that is %s is refused on every wire", async (_, fault, claims) => {
    const headers = await bearer(claims());
    const overGrpc = await platform.clients.tasks.getTask({ taskId }, { headers }).catch((error) => error);
    expect(overGrpc).toBeInstanceOf(ConnectError);
    expect(overGrpc.code).toBe(Code.Unauthenticated);
    const overConnect = await platform.post("/depute.tasks.v1.TaskService/GetTask", { taskId }, headers);
    expect(overConnect.status).toBe(401);
    expect(await overConnect.text()).toContain(`"fault":"${fault}"`);
    const overNekte = await platform.post("/nekte/echo", call("nekte.discover", { level: 0 }), headers);
    expect(overNekte.status).toBe(401);
    expect(overNekte.headers.get("www-authenticate")).toContain("Bearer");
    expect(await overNekte.json()).toMatchObject({ error: { data: { metadata: { fault } } } });
  });

  test("beside a holder proof is refused, and so is a token as API key", async () => {
    const headers = await bearer();
    const path = "/depute.tasks.v1.TaskService/GetTask";
    expect((await platform.post(path, { taskId }, { ...headers, dpop: "x.y.z" })).status).toBe(401);
    const key = headers.authorization.slice("Bearer ".length);
    expect((await platform.post(path, { taskId }, { "x-api-key": key })).status).toBe(401);
  });
});

test("an open platform refuses a wrong token too, and does not serve it as a caller without credentials", async () => {
  const platform = await startPlatform(flags.slice(2));
  try {
    const list = async (headers: Record<string, string>) =>
      (await platform.post("/depute.registry.v1.AgentService/ListAgents", {}, headers)).status;
    expect(await list({})).toBe(200);
    expect(await list(await bearer())).toBe(200);
    expect(await list(await bearer({ exp: 1_700_000_000 }))).toBe(401);
  } finally {
    await platform.stop();
  }
});
