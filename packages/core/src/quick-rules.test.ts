import { clearField, create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { WaitTaskRequestSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { VerifyTokenRequestSchema } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { Role, SendMessageRequestSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { brokenRulesByProtovalidate } from "./protovalidate-rules.ts";
import { isSureToKeepRules } from "./quick-rules.ts";
import { messagesOf, ownContracts } from "./testing/index.ts";

const contracts = await ownContracts();

function clear(message: Message & Record<string, unknown>, part: Path[number] | undefined): void {
  if (part?.kind === "field") clearField(message, part);
  else if (part?.kind === "oneof") message[part.localName] = { case: undefined };
}

describe("what is sure to keep the rules keeps them", () => {
  test.each(contracts.map((desc) => [desc.typeName, desc] as const))("%s", (_, desc) => {
    fc.assert(
      fc.property(messagesOf(desc), (message) => {
        const broken = brokenRulesByProtovalidate(desc, message);
        if (isSureToKeepRules(desc, message)) expect(broken).toEqual([]);
        // Few random messages satisfy all rules, so the check is repeated after the invalid fields are cleared.
        for (const { field } of broken) clear(message as never, field[0]);
        if (isSureToKeepRules(desc, message)) expect(brokenRulesByProtovalidate(desc, message)).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });
});

test.each([
  [Role.USER, true],
  [Role.UNSPECIFIED, false],
  [99 as Role, false],
])("a message of A2A with the role %s is sure to keep the rules: %s", (role, isSure) => {
  const part = { content: { case: "text", value: "count" } } as const;
  const message = { messageId: "m", role, parts: [part] };
  expect(isSureToKeepRules(SendMessageRequestSchema, create(SendMessageRequestSchema, { message }))).toBe(
    isSure,
  );
});

type VerifyTokenFields = Exclude<MessageInitShape<typeof VerifyTokenRequestSchema>, { $typeName: string }>;

describe("the length of a wait", () => {
  const waits = (timeout: { seconds: bigint; nanos: number }) =>
    isSureToKeepRules(WaitTaskRequestSchema, create(WaitTaskRequestSchema, { taskId: "t", timeout }));

  test.each<[string, bigint, number, boolean]>([
    ["none", 0n, 0, true],
    ["as long as may be", 60n, 0, true],
    ["a nanosecond more", 60n, 1, false],
    ["below zero", -1n, 0, false],
    ["a nanosecond below zero", 0n, -1, false],
    ["nanoseconds that are a second", 1n, 1_000_000_000, false],
    ["more than a duration holds", 315_576_000_001n, 0, false],
  ])("%s", (_, seconds, nanos, isSure) => {
    expect(waits({ seconds, nanos })).toBe(isSure);
  });

  test.each(fieldsWithDurations().map((field) => [field.parent.typeName, field] as const))(
    "is looked at in %s",
    (_, field) => {
      const message = create(field.parent, { [field.localName]: { seconds: 30n } } as never);
      const without = create(field.parent);
      // The message may lack other required fields. So the test applies only to types whose message passes without the
      // duration.
      if (isSureToKeepRules(field.parent, without))
        expect(isSureToKeepRules(field.parent, message)).toBe(true);
    },
  );
});

function fieldsWithDurations() {
  return contracts.flatMap(({ fields }) =>
    fields.filter(
      (field) => field.fieldKind === "message" && field.message.typeName === "google.protobuf.Duration",
    ),
  );
}

describe("a verification that is asked for", () => {
  const createRequest = (change: VerifyTokenFields = {}) => {
    return create(VerifyTokenRequestSchema, {
      token: { token: "anything", format: "at all" },
      proof: { jwt: "a.b.c", method: "POST", target: "https://example.com/call" },
      requested: { namespace: "docs", action: "read", resource: "/a/b.txt" },
      requiredCapabilities: ["docs:read"],
      spentMicrocents: 5n,
      ...change,
    });
  };
  const isSure = (message: ReturnType<typeof createRequest>) =>
    isSureToKeepRules(VerifyTokenRequestSchema, message);

  test("is sure to keep the rules of its contract", () => {
    expect(isSure(createRequest())).toBe(true);
    expect(isSure(createRequest({ contractId: "c".repeat(64), spentMicrocents: 2n ** 53n - 1n }))).toBe(true);
  });

  test.each<[string, VerifyTokenFields]>([
    ["a text that is too long", { contractId: "c".repeat(65) }],
    ["an item that is too long", { requiredCapabilities: ["c".repeat(257)] }],
    ["too many items", { requiredCapabilities: Array.from({ length: 65 }, () => "docs:read") }],
    ["a number below its range", { spentMicrocents: -1n }],
    ["a number above its range", { spentMicrocents: 2n ** 53n }],
    ["a text within that is too long", { proof: { method: "M".repeat(17) } }],
    [
      "a text within that does not match",
      { requested: { namespace: "Docs", action: "read", resource: "/" } },
    ],
    ["a text within that is empty", { requested: { namespace: "docs", action: "read" } }],
    ["an item within that does not match", { alsoRequested: [{ namespace: "", action: "", resource: "" }] }],
  ])("is not with %s", (_, change) => {
    expect(isSure(createRequest(change))).toBe(false);
  });

  test("is not without what is required", () => {
    const message = createRequest();
    clearField(message, VerifyTokenRequestSchema.field.requested);
    expect(isSure(message)).toBe(false);
  });

  test("is not when it is another message", () => {
    expect(isSureToKeepRules(VerifyTokenRequestSchema, create(HolderProofSchema))).toBe(false);
  });
});
