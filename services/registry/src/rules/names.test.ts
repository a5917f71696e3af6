import { DeputeError, reasonName } from "@depute/core";
import { describe, expect, it } from "vitest";
import { type CapabilityName, readCapabilityName } from "./capability-name.ts";
import { baseOf, checkOwnership } from "./registration.ts";

function reasonOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof DeputeError) return reasonName(error.reason);
    throw error;
  }
}

describe("readCapabilityName", () => {
  it.each<[string, string, CapabilityName]>([
    ["sum", "", { id: "sum" }],
    ["sum", "a", { id: "sum", agentId: "a" }],
    ["a/sum", "", { id: "sum", agentId: "a" }],
    ["a/sum", "a", { id: "sum", agentId: "a" }],
    ["a/b/c", "", { id: "b/c", agentId: "a" }],
    ["urn:a:1/sum", "", { id: "sum", agentId: "urn:a:1" }],
  ])("%j beside %j", (name, agentId, expected) => {
    expect(readCapabilityName(name, agentId)).toEqual(expected);
  });

  it.each([
    ["a/sum", "b"],
    ["/sum", ""],
    ["a/", ""],
    ["/", "a"],
  ])("refuses %j beside %j", (name, agentId) => {
    expect(reasonOf(() => readCapabilityName(name, agentId))).toBe("INVALID_REQUEST");
  });
});

describe("checkOwnership", () => {
  const hers = { principal: "hers" };
  const his = { principal: "his" };

  it.each<
    [string, string, { principal: string } | undefined, { principal: string } | undefined, string | undefined]
  >([
    ["a new agent", "a", undefined, undefined, undefined],
    ["an agent of the caller", "a", hers, undefined, undefined],
    ["his", "a", his, undefined, "AGENT_EXISTS"],
    ["an agent without a key", "a", { principal: "" }, undefined, "AGENT_EXISTS"],
    ["an instance of the caller's agent", "a:1", undefined, hers, undefined],
    ["an instance of another principal's agent", "a:1", undefined, his, "INVALID_REQUEST"],
    ["an instance without a base", "a:1", undefined, undefined, "INVALID_REQUEST"],
    ["another principal's instance of the caller's agent", "a:1", his, hers, "AGENT_EXISTS"],
  ])("%s", (_, id, taken, base, expected) => {
    expect(reasonOf(() => checkOwnership(id, "hers", taken, base))).toBe(expected);
  });

  it("finds the base before the first colon", () => {
    expect(["a", "a:1", "a:b:c", "a:"].map(baseOf)).toEqual([undefined, "a", "a", "a"]);
  });
});
