import { createClient } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeputeError, ErrorReason, ManualClock } from "@depute/core";
import { createDirectTransport } from "@depute/service";
import { beforeEach, describe, expect, test } from "vitest";
import { Endpoints } from "./agents.ts";

const PUBLIC = "https://depute.example";
const never = new AbortController().signal;

let clock: ManualClock;
let askedIds: string[];
let agents: Map<string, { endpoint?: string; status?: AgentStatus } | "away">;
let endpoints: Endpoints;

beforeEach(() => {
  clock = new ManualClock();
  askedIds = [];
  agents = new Map();
  const transport = createDirectTransport({
    clock,
    timers: clock,
    routes: (router) =>
      router.rpc(AgentService.method.getAgent, ({ agentId: id }) => {
        askedIds.push(id);
        const agent = agents.get(id);
        if (agent === "away") throw DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "away");
        if (agent === undefined) throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent");
        const { endpoint, status = AgentStatus.ACTIVE } = agent;
        return { agent: { id, status, ...(endpoint === undefined ? {} : { nekte: { endpoint } }) } };
      }),
  });
  endpoints = new Endpoints(createClient(AgentService, transport), clock, () => PUBLIC);
});

describe("an agent's endpoint", () => {
  test.each([
    ["is the address in its record", { endpoint: "https://a.example/nekte" }, "https://a.example/nekte"],
    ["is absent without an address", {}, ""],
    ["is absent for a removed agent", { endpoint: "https://a.example", status: AgentStatus.REMOVED }, ""],
    ["is never the platform's own address", { endpoint: `${PUBLIC}/nekte/a` }, ""],
    ["is never the platform's own address over gRPC", { endpoint: "grpcs://depute.example" }, ""],
    [
      "may be at another port of the platform's host",
      { endpoint: "https://depute.example:8443" },
      "https://depute.example:8443",
    ],
  ])("%s", async (_, agent, endpoint) => {
    agents.set("a", agent);
    expect(await endpoints.endpointOf("a", never)).toBe(endpoint);
  });

  test("is absent for an unknown agent", async () => {
    expect(await endpoints.endpointOf("nobody", never)).toBe("");
  });

  test("is cached for a while, and then read again", async () => {
    agents.set("a", {});
    expect(endpoints.hasNone("a")).toBe(false);
    await endpoints.endpointOf("a", never);
    await endpoints.endpointOf("a", never);
    expect([askedIds, endpoints.hasNone("a")]).toEqual([["a"], true]);
    clock.advance(5000);
    agents.set("a", { endpoint: "http://b.example" });
    expect(endpoints.hasNone("a")).toBe(false);
    expect(await endpoints.endpointOf("a", never)).toBe("http://b.example");
  });

  test("is unknown while the registry is unavailable", async () => {
    agents.set("a", "away");
    await expect(endpoints.endpointOf("a", never)).rejects.toMatchObject({
      reason: ErrorReason.DEPENDENCY_UNAVAILABLE,
    });
    agents.set("a", { endpoint: "http://b.example" });
    expect(await endpoints.endpointOf("a", never)).toBe("http://b.example");
  });
});
