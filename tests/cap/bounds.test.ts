import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Cast, example, type Json, keyOf, secretOf, startCast } from "./cast.ts";

let cast: Cast;
beforeAll(async () => {
  cast = await startCast(["--bounds-operators", "an-operator"]);
}, 60_000);
afterAll(() => cast.stop());

const manifest = (id: string, more: object = {}) => ({ ...example(`manifest-${id}`), ...more });
const put = (player: string, id: string, body: object, query = `?principal=${keyOf("analyst-1")}`) =>
  cast.as(player).ask("PUT", `/cap/agents/${id}${query}`, body);
const shown = async (id: string): Promise<Json> =>
  (await cast.as("analyst-1").ask("GET", `/cap/agents/${id}`)).body;
const fieldsOf = ({ violations = [] }: Json): string[] => violations.map(({ path }: Json) => path);

const M = "agent.manifest";
const wider: [string, object, string[]][] = [
  [
    "another delegate",
    {
      allowed_agents: ["qa-1", "pm-1"],
      delegate_rules: {
        "qa-1": (example("manifest-analyst-1").delegate_rules as Json)["qa-1"],
        "pm-1": { when_to_delegate: "always" },
      },
    },
    [`${M}.allowed_agents["pm-1"]`, `${M}.delegate_rules["pm-1"]`],
  ],
  [
    "another condition",
    { delegate_rules: { "qa-1": { when_to_delegate: "always" } } },
    [`${M}.delegate_rules["qa-1"].when_to_delegate`],
  ],
  ["no overseer", { overseer: null }, [`${M}.overseer`]],
  ["another overseer", { overseer: "pm-1" }, [`${M}.overseer`]],
  [
    "another server, and no delegate any more",
    {
      allowed_agents: [],
      delegate_rules: {},
      mcp_bindings: [{ server_id: "Shell", scopes: [], allowed_tools: ["run"] }],
    },
    [`${M}.mcp_bindings["Shell"]`],
  ],
];

describe("an agent's own PUT of its manifest", () => {
  beforeEach(async () => {
    expect((await put("operator", "analyst-1", manifest("analyst-1"))).status).toBe(201);
  });

  test.each(wider)(
    "that gives it %s is refused, names each widening, and changes nothing",
    async (_, more, fields) => {
      const { status, body } = await put("analyst-1", "analyst-1", manifest("analyst-1", more));
      expect([status, body.reason, body.error_code]).toEqual([403, "AGENT_BOUNDS_WIDENED", 403]);
      expect(fieldsOf(body)).toEqual(fields);
      expect(await shown("analyst-1")).toEqual(manifest("analyst-1"));
    },
  );

  test("without an overseer member is refused like one with null", async () => {
    const { overseer: _, ...without } = manifest("analyst-1") as Json;
    const { status, body } = await put("analyst-1", "analyst-1", without);
    expect([status, fieldsOf(body)]).toEqual([403, [`${M}.overseer`]]);
  });

  test.each(wider)("is accepted of an operator: %s", async (_, more) => {
    const after = manifest("analyst-1", more);
    expect((await put("operator", "analyst-1", after, "")).status).toBe(201);
    expect(await shown("analyst-1")).toEqual(after);
  });

  test("that narrows the bounds applies to the next delegation, and cannot be undone by the agent", async () => {
    await cast.as("orchestrator").send({
      type: "delegation_notice",
      task_id: "B1",
      sender_id: "orchestrator",
      recipient_id: "analyst-1",
      context_summary: "Look.",
      attachments: [],
    });
    const narrower = manifest("analyst-1", { allowed_agents: [], delegate_rules: {}, mcp_bindings: [] });
    expect((await put("analyst-1", "analyst-1", narrower)).status).toBe(201);
    const notice = {
      type: "delegation_notice",
      task_id: "B1.1",
      sender_id: "analyst-1",
      recipient_id: "qa-1",
      context_summary: "Check.",
      attachments: [],
    };
    const refused = await cast.as("analyst-1").send(notice);
    expect([refused.status, refused.body.metadata.rule]).toEqual([403, "not_allowed"]);
    const back = await put("analyst-1", "analyst-1", manifest("analyst-1"));
    expect(back.status).toBe(403);
  });

  test("of another agent of the same key gives the key no further permission", async () => {
    const twin = { ...manifest("analyst-1"), id: "twin-1", overseer: null };
    const free = (await put("analyst-1", "twin-1", { ...twin, mcp_bindings: [] })).status;
    expect(free).toBe(201);
    const other = { ...twin, id: "twin-2", allowed_agents: ["pm-1"], delegate_rules: {} };
    const { status, body } = await put("analyst-1", "twin-2", other);
    expect([status, fieldsOf(body)]).toEqual([403, [`${M}.allowed_agents["pm-1"]`]]);
  });

  test("of an instance is always its base's", async () => {
    const widened = { ...manifest("analyst-1"), overseer: null };
    expect((await put("analyst-1", "analyst-1:b", widened)).status).toBe(201);
    expect(await shown("analyst-1:b")).toMatchObject({ overseer: "qa-1" });
  });
});

describe("over gRPC, by @grpc/grpc-js", () => {
  const headersOf = (id: string) => ({ headers: { authorization: `Bearer ${secretOf(id)}` } });
  const register = (player: string, parts: object) =>
    cast.platform.clients.agents.registerAgent(
      { requestId: crypto.randomUUID(), agent: { id: "grpc-1", principal: keyOf("qa-1"), ...parts } },
      headersOf(player),
    );
  const overseer = { case: "overseerId", value: "pm-1" } as const;
  const overseen = { manifest: { id: "grpc-1", overseer } };
  const refused = {
    code: Code.PermissionDenied,
    message: expect.stringContaining("DEPUTE_BOUNDS_OPERATORS"),
  };

  beforeAll(() => register("qa-1", overseen));

  test.each<[string, object]>([
    ["the manifest taken away", {}],
    ["the overseer taken away", { manifest: { id: "grpc-1" } }],
    ["another delegate", { manifest: { ...overseen.manifest, allowedAgents: ["pm-1"] } }],
  ])("RegisterAgent is refused with %s", async (_, parts) => {
    await expect(register("qa-1", parts)).rejects.toMatchObject(refused);
  });

  test("a removed agent returns with its previous bounds, not with wider ones", async () => {
    await cast.platform.clients.agents.deregisterAgent({ agentId: "grpc-1" }, headersOf("qa-1"));
    await expect(register("qa-1", { manifest: { id: "grpc-1" } })).rejects.toMatchObject(refused);
    await register("qa-1", overseen);
  });

  test("an operator widens the bounds without the agent's key, and changes nothing else", async () => {
    const described = register("operator", { ...overseen, description: "another" });
    await expect(described).rejects.toMatchObject({ code: Code.PermissionDenied });
    const { agent } = await register("operator", { manifest: { id: "grpc-1" } });
    expect(agent?.manifest?.overseer.case).toBeUndefined();
  });
});

test("where the setting is empty and credentials are required, no caller widens", async () => {
  const closed = await startCast();
  try {
    const body = manifest("analyst-1", { overseer: null });
    const path = `/cap/agents/analyst-1?principal=${keyOf("analyst-1")}`;
    for (const id of ["analyst-1", "operator"]) {
      expect((await closed.as(id).ask("PUT", path, body)).status).toBe(403);
    }
  } finally {
    await closed.stop();
  }
}, 60_000);
