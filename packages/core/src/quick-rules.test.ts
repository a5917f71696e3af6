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

describe("every message that passes the quick check passes protovalidate", () => {
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
])("an A2A message with the role %s passes the quick check: %s", (role, isSure) => {
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
    ["equal to the maximum", 60n, 0, true],
    ["a nanosecond above the maximum", 60n, 1, false],
    ["below zero", -1n, 0, false],
    ["a nanosecond below zero", 0n, -1, false],
    ["nanoseconds of a whole second", 1n, 1_000_000_000, false],
    ["above the range of a duration", 315_576_000_001n, 0, false],
  ])("%s", (_, seconds, nanos, isSure) => {
    expect(waits({ seconds, nanos })).toBe(isSure);
  });

  test.each(fieldsWithDurations().map((field) => [field.parent.typeName, field] as const))(
    "is checked in %s",
    (_, field) => {
      const message = create(field.parent, { [field.localName]: { seconds: 30n } } as never);
      const without = create(field.parent);
      // The message may lack required fields besides the duration. So the test checks only types whose message is
      // valid without the duration.
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

describe("a requested verification", () => {
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

  test("passes the quick check if it keeps the rules", () => {
    expect(isSure(createRequest())).toBe(true);
    expect(isSure(createRequest({ contractId: "c".repeat(64), spentMicrocents: 2n ** 53n - 1n }))).toBe(true);
  });

  test.each<[string, VerifyTokenFields]>([
    ["a text that is too long", { contractId: "c".repeat(65) }],
    ["an item that is too long", { requiredCapabilities: ["c".repeat(257)] }],
    ["too many items", { requiredCapabilities: Array.from({ length: 65 }, () => "docs:read") }],
    ["a number below its range", { spentMicrocents: -1n }],
    ["a number above its range", { spentMicrocents: 2n ** 53n }],
    ["a nested text that is too long", { proof: { method: "M".repeat(17) } }],
    [
      "a nested text that does not match",
      { requested: { namespace: "Docs", action: "read", resource: "/" } },
    ],
    ["a nested text that is empty", { requested: { namespace: "docs", action: "read" } }],
    ["a nested item that does not match", { alsoRequested: [{ namespace: "", action: "", resource: "" }] }],
  ])("does not pass the quick check with %s", (_, change) => {
    expect(isSure(createRequest(change))).toBe(false);
  });

  test("does not pass the quick check without a required field", () => {
    const message = createRequest();
    clearField(message, VerifyTokenRequestSchema.field.requested);
    expect(isSure(message)).toBe(false);
  });

  test("does not pass the quick check if it is another message", () => {
    expect(isSureToKeepRules(VerifyTokenRequestSchema, create(HolderProofSchema))).toBe(false);
  });
});
