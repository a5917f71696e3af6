import { create, type JsonObject } from "@bufbuild/protobuf";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Affiliation } from "@depute/core";
import { describe, expect, it } from "vitest";
import { acceptableVerifiers, verifiersRefusal } from "./verifiers.ts";

const asking = (metadata: JsonObject) =>
  create(ExecutionRequestSchema, {
    sellerAgentId: "seller",
    buyerAgent: { agentId: "buyer", organizationId: "org:buyer" },
    metadata,
  });

describe("the verifiers that a request names", () => {
  it.each<[string, JsonObject, string[] | undefined]>([
    ["none", {}, []],
    ["none by null", { acceptable_verifiers: null }, []],
    ["one", { acceptable_verifiers: "judge" }, ["judge"]],
    ["two, one twice", { acceptable_verifiers: "judge, org:b.judge,judge" }, ["judge", "org:b.judge"]],
    ["an empty text", { acceptable_verifiers: "" }, undefined],
    ["a number", { acceptable_verifiers: 7 }, undefined],
    ["what is no id", { acceptable_verifiers: "judge, two words" }, undefined],
    ["17", { acceptable_verifiers: Array.from({ length: 17 }, (_, i) => `judge-${i}`).join() }, undefined],
  ])("%s", (_, metadata, expected) => {
    expect(acceptableVerifiers(asking(metadata))).toEqual(expected);
  });
});

describe("a request is refused", () => {
  const affiliations: Affiliation[] = [
    { agentId: "seller", principal: "k-seller", organizations: [] },
    { agentId: "buyer", principal: "k-buyer", organizations: ["org:buyer"] },
    { agentId: "sock", principal: "k-seller", organizations: [] },
    { agentId: "colleague", principal: "k-colleague", organizations: ["org:buyer"] },
    { agentId: "judge", principal: "k-judge", organizations: [] },
  ];
  it.each<[string, string, string | undefined]>([
    ["that names another owner's agent: not", "judge", undefined],
    ["that names a stranger", "judge,stranger", "register it first"],
    ["that names the seller's second agent", "judge,sock", "sock has one owner"],
    ["that names a colleague of the buyer", "colleague", "colleague has one owner"],
    ["that names no ids", "a b", "with commas"],
  ])("%s", (_, names, message) => {
    const request = asking({ acceptable_verifiers: names });
    const refusal = verifiersRefusal(request, acceptableVerifiers(request), (id) =>
      affiliations.find(({ agentId }) => agentId === id),
    );
    if (message === undefined) expect(refusal).toBeUndefined();
    else {
      expect(refusal?.message).toContain(message);
      expect(refusal?.details).toMatchObject({ path: "/metadata/acceptable_verifiers" });
    }
  });
});
