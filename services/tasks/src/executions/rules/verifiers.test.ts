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
    ["none are named", {}, []],
    ["null names none", { acceptable_verifiers: null }, []],
    ["one is named", { acceptable_verifiers: "judge" }, ["judge"]],
    [
      "a repeated name counts once",
      { acceptable_verifiers: "judge, org:b.judge,judge" },
      ["judge", "org:b.judge"],
    ],
    ["an empty text is malformed", { acceptable_verifiers: "" }, undefined],
    ["a number is malformed", { acceptable_verifiers: 7 }, undefined],
    ["a text that is not an id is malformed", { acceptable_verifiers: "judge, two words" }, undefined],
    [
      "17 names are too many",
      { acceptable_verifiers: Array.from({ length: 17 }, (_, i) => `judge-${i}`).join() },
      undefined,
    ],
  ])("%s", (_, metadata, expected) => {
    expect(acceptableVerifiers(asking(metadata))).toEqual(expected);
  });
});

describe("a request that names", () => {
  const affiliations: Affiliation[] = [
    { agentId: "seller", principal: "k-seller", organizations: [] },
    { agentId: "buyer", principal: "k-buyer", organizations: ["org:buyer"] },
    { agentId: "sock", principal: "k-seller", organizations: [] },
    { agentId: "colleague", principal: "k-colleague", organizations: ["org:buyer"] },
    { agentId: "judge", principal: "k-judge", organizations: [] },
  ];
  it.each<[string, string, string | undefined]>([
    ["an agent of another owner is accepted", "judge", undefined],
    ["an unregistered agent is refused", "judge,stranger", "register it first"],
    ["the seller's second agent is refused", "judge,sock", "sock has the same owner"],
    ["an agent of the buyer's organization is refused", "colleague", "colleague has the same owner"],
    ["a malformed list is refused", "a b", "separated by commas"],
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
