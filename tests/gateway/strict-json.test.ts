import { getOption } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { refuses_unknown_fields } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { refusal } from "@depute/service/testing";
import { MODULES } from "depute";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
let adapter: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
  adapter = await startPlatform(["--fast-path", "false"]);
});
afterAll(async () => {
  await platform.stop();
  await adapter.stop();
});

const METHODS = Object.values(MODULES).flatMap(({ name, descriptors }) =>
  name === "gateway" ? [] : descriptors.flatMap(({ methods }) => methods),
);
const pathOf = (method: (typeof METHODS)[number]) => `/${method.parent.typeName}/${method.name}`;

async function ask(at: TestPlatform, path: string, body: string): Promise<{ status: number; body: Json }> {
  const answer = await at.post(path, body);
  return { status: answer.status, body: await answer.json().catch(() => undefined) };
}

/**
 * The calls that refuse unknown fields: those that grant or spend authority, that begin or approve work, that
 * change agents, offers, contracts or organizations, or that delete records.
 */
const STRICT = [
  ...["TokenService/MintToken", "TokenService/RecordToken", "TokenService/PrepareAttenuation"],
  ...["TokenService/AttenuateToken", "TokenService/ExchangeToken", "TokenService/ProjectToken"],
  ...["KeyService/CreateKey", "KeyService/MintWithKey", "RootKeyService/RotateRootKey"],
  ...["KeyService/AttenuateWithKey", "SpendService/ReserveSpend", "SpendService/CommitSpend"],
  ...["SpendService/ReleaseSpend", "AgentService/RegisterAgent", "AgentService/PublishCapabilities"],
  ...["AgentService/SetAgentStatus", "AgentService/ReplacePrincipal", "OfferService/PublishOffer"],
  ...[
    "OrganizationService/AdmitMember",
    "ProposalService/CreateProposal",
    "TaskService/CreateTask",
    "TaskService/BatchCreateTasks",
  ],
  ...[
    "TaskService/DelegateTask",
    "TaskService/PurgeOrganization",
    "OrganizationService/PurgeOrganization",
    "DelegationService/PurgeOrganization",
    "ContractService/PurgeOrganization",
    "WorkerService/SetDelegateLimits",
    "ExecutionService/RequestExecution",
  ],
  ...["ExecutionService/ApproveExecution", "MessageService/SendMessage", "ContractService/CreateContract"],
  ...["ContractService/SignContract", "ContractService/DecomposeContract"],
];

test("the contracts name the calls that refuse unknown fields", () => {
  const strictMethods = METHODS.filter((method) => getOption(method, refuses_unknown_fields));
  const short = strictMethods.map((method) => `${method.parent.name}/${method.name}`);
  expect(short.sort()).toEqual([...STRICT].sort());
});

describe.each([
  ["the fast path's server", () => platform],
  ["the adapter", () => adapter],
])("by %s", (_, at) => {
  test("each of them refuses an unknown field, and names it, in JSON over any protocol", async () => {
    for (const method of METHODS.filter((each) => getOption(each, refuses_unknown_fields))) {
      if (method.methodKind !== "unary") continue;
      const { status, body } = await ask(at(), pathOf(method), '{"maxBudgetMicrocentz": 1}');
      expect([method.name, status]).toEqual([method.name, 400]);
      expect(JSON.stringify(body)).toContain("maxBudgetMicrocentz");
      expect(body.details[0].debug).toMatchObject({ reason: "INVALID_REQUEST" });
    }
  });

  test("an unknown nested field or enum value is refused as well", async () => {
    const create = (draft: object) =>
      ask(at(), "/depute.tasks.v1.TaskService/CreateTask", JSON.stringify({ requestId: "r", draft }));
    expect(JSON.stringify((await create({ agentId: "a", timeout: "1s" })).body)).toContain("timeout");
    const agent = { id: "a", visibility: { kind: "NO_SUCH_WORD" } };
    const answer = await ask(
      at(),
      "/depute.registry.v1.AgentService/RegisterAgent",
      JSON.stringify({ requestId: "r", agent }),
    );
    expect(answer.status).toBe(400);
  });

  test("all others ignore one", async () => {
    for (const path of ["tokens.v1.TokenService/GetIssuer", "registry.v1.AgentService/ListAgents"]) {
      expect((await ask(at(), `/depute.${path}`, '{"noSuchField": [{}]}')).status).toBe(200);
    }
  });

  test.each([
    ["in the request", '{"pageSize": 1, "pageSize": 2}', "pageSize"],
    ["in a nested message", '{"filter": {"a": 1, "\\u0061": 2}}', "a"],
  ])("a repeated member %s is refused", async (_, text, name) => {
    const { status, body } = await ask(at(), "/depute.registry.v1.AgentService/ListAgents", text);
    expect(status).toBe(400);
    expect(body.message).toContain(`"${name}" occurs twice`);
  });

  test.each([
    ["too deep", "[".repeat(1_000_000), "json_depth", "100"],
    ["too many values", `{"a":[${"1,".repeat(100_000)}1]}`, "json_values", "50000"],
  ])("JSON with %s is refused before it is parsed", async (_, text, limit, max) => {
    for (const type of ["application/json", "application/json; charset=utf-8", "application/connect+json"]) {
      const [path, body] =
        type === "application/connect+json"
          ? ["/depute.tasks.v1.TaskService/WatchTask", enveloped(text)]
          : ["/depute.registry.v1.AgentService/ListAgents", Buffer.from(text)];
      const answer = await fetch(`${at().url}${path}`, {
        method: "POST",
        body,
        headers: { "content-type": type },
      });
      expect(await answer.text()).toContain(`"limit":"${limit}","max":"${max}"`);
    }
  });

  test.each([
    ["the end of the year 9999", { seconds: 253_402_300_799n, nanos: 999_999_999 }],
    ["beyond", { seconds: 253_402_300_800n, nanos: 0 }],
    ["the largest number", { seconds: 9_223_372_036_854_775_807n, nanos: 0 }],
  ])("a time at %s is an invalid argument, in binary and in JSON", async (_, keepBefore) => {
    const transports = [
      createGrpcTransport({ baseUrl: at().url }),
      createConnectTransport({ baseUrl: at().url, httpVersion: "1.1", useBinaryFormat: true }),
    ];
    for (const transport of transports) {
      const revoked = createClient(RevocationService, transport).revokeKeyAsRoot({ key: "k", keepBefore });
      expect(await refusal(revoked)).toMatchObject({
        reason: "INVALID_REQUEST",
        fields: expect.arrayContaining(["keep_before"]),
      });
    }
  });
});

function enveloped(text: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

test("a time out of range is an invalid argument in Connect JSON too", async () => {
  for (const keepBefore of ["9999-12-31T23:59:59.999999999Z", "9999-12-31T00:00:00Z"]) {
    const { status, body } = await ask(
      platform,
      "/depute.tokens.v1.RevocationService/RevokeKeyAsRoot",
      JSON.stringify({ key: "k", keepBefore }),
    );
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
  }
});

test.each([
  ["/nekte", '{"jsonrpc":"2.0","id":1,"method":"nekte.discover","params":{"level":0,"level":1}}'],
  ["/delegateos", '{"jsonrpc":"2.0","id":1,"method":"delegateos/revoke","params":{"a":1,"a":2}}'],
  ["/agenta/execution_requests", '{"protocol_version":"x","protocol_version":"y"}'],
  ["/v1/asp/sessions", '{"version":"asp/0.1","version":"asp/0.1"}'],
  ["/cap/messages", '{"type":"a","type":"b"}'],
  ["/mcp", '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'],
])("a repeated member is refused at %s", async (path, text) => {
  const answer = await platform.post(path, text, { accept: "application/json, text/event-stream" });
  expect(await answer.text()).toContain("occurs twice");
});
