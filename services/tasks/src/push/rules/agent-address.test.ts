import { create } from "@bufbuild/protobuf";
import { AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { describe, expect, test } from "vitest";
import { addressOf, readA2aAddress, urlOf } from "./agent-address.ts";

const RPC = { url: "https://a.example/rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "t" };

describe("the address of an agent", () => {
  test("with an A2A card is the card's first usable interface", () => {
    const agent = create(AgentSchema, {
      a2aCard: { supportedInterfaces: [RPC], capabilities: { streaming: true } },
    });
    const text = addressOf(agent);
    expect(readA2aAddress(text)).toEqual({
      binding: "JSONRPC",
      url: RPC.url,
      tenant: "t",
      streaming: true,
    });
    expect(urlOf(text)).toBe(RPC.url);
  });

  test("with a card that declares nothing is polled", () => {
    const agent = create(AgentSchema, { a2aCard: { supportedInterfaces: [RPC] } });
    expect(readA2aAddress(addressOf(agent))?.streaming).toBe(false);
  });

  test.each([
    ["a NEKTE endpoint", { nekte: { endpoint: "https://a.example" } }, "https://a.example"],
    ["no address", {}, ""],
    ["a card without a usable interface", { a2aCard: {} }, ""],
  ])("with %s", (_, record, text) => {
    expect(addressOf(create(AgentSchema, record))).toBe(text);
    expect(readA2aAddress(text)).toBeUndefined();
  });

  test.each(["a2a:{}", 'a2a:{"binding":"SOAP","url":"x","tenant":"","streaming":true}'])(
    "is not read from %s",
    (text) => {
      expect(readA2aAddress(text)).toBeUndefined();
    },
  );
});
