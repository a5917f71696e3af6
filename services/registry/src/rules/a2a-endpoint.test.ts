import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentCardSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import type { DeputeError } from "@depute/core";
import { describe, expect, test } from "vitest";
import { requireA2aInterface } from "./a2a-endpoint.ts";
import { endpointsOf } from "./endpoints.ts";
import { inherit } from "./instances.ts";

const RPC = { url: "https://agents.example/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" };

function agent({ a2aCard, ...more }: MessageInitShape<typeof AgentSchema> = {}): Agent {
  const card = create(AgentCardSchema, a2aCard ?? { name: "A", supportedInterfaces: [RPC] });
  return create(AgentSchema, { id: "a", ...more, a2aCard: card });
}

function violation(record: Agent) {
  try {
    requireA2aInterface(record);
  } catch (error) {
    return (error as DeputeError).violations[0]?.field;
  }
  return undefined;
}

describe("an agent's own A2A card", () => {
  test("gives the address that is called, which counts among the agent's addresses", () => {
    const found = requireA2aInterface(agent());
    expect(found).toEqual({ binding: "JSONRPC", url: RPC.url, tenant: "" });
    expect(endpointsOf(agent(), found)).toContainEqual({
      field: "agent.a2a_card.supported_interfaces",
      url: RPC.url,
    });
  });

  test("is not required", () => {
    expect(requireA2aInterface(create(AgentSchema, { id: "a" }))).toBeUndefined();
  });

  test.each<[string, Agent, string]>([
    ["without an address", agent({ a2aCard: { name: "A" } }), "agent.a2a_card.supported_interfaces"],
    [
      "of an old version",
      agent({ a2aCard: { supportedInterfaces: [{ ...RPC, protocolVersion: "0.3.0" }] } }),
      "agent.a2a_card.supported_interfaces",
    ],
    ["beside a NEKTE endpoint", agent({ nekte: { endpoint: "https://agents.example" } }), "agent.a2a_card"],
    [
      "beyond the limit",
      agent({ a2aCard: { description: "x".repeat(16_384), supportedInterfaces: [RPC] } }),
      "agent.a2a_card",
    ],
  ])("is refused %s", (_, record, field) => {
    expect(violation(record)).toBe(field);
  });

  test("may stand beside facts of NEKTE without an endpoint", () => {
    expect(violation(agent({ nekte: { budgetSupport: true } }))).toBeUndefined();
  });
});

describe("an instance", () => {
  const base = agent();

  test("inherits its base's card", () => {
    const instance = create(AgentSchema, { id: "a:1", nekte: { budgetSupport: true } });
    expect(inherit(instance, base).a2aCard).toEqual(base.a2aCard);
  });

  test("with a NEKTE endpoint inherits no card", () => {
    const instance = create(AgentSchema, { id: "a:1", nekte: { endpoint: "https://agents.example" } });
    expect(violation(inherit(instance, base))).toBeUndefined();
    expect(inherit(instance, base).a2aCard).toBeUndefined();
  });

  test("with a card inherits no NEKTE endpoint", () => {
    const nekteBase = create(AgentSchema, { id: "a", nekte: { endpoint: "https://agents.example" } });
    const instance = agent({ id: "a:1" });
    expect(inherit(instance, nekteBase)).toMatchObject({ a2aCard: instance.a2aCard });
    expect(violation(inherit(instance, nekteBase))).toBeUndefined();
  });
});
