import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ConnectError, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { RetryInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";

/** A platform where a principal may read and write once a second in each service. */
let platform: TestPlatform;
let folder: string;

/** One caller for each test, so that no test uses the quota of another. */
const CALLERS = [
  ...["grpc", "connect", "curl", "modest", "other"],
  ...["cap", "agenta", "asp", "delegateos", "nekte", "a2a", "member-1", "member-2", "member-3"],
];
const authorization = (name: string) => `Bearer secret-of-${name}`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-quotas-"));
  const file = join(folder, "credentials.json");
  const credentials = CALLERS.map((principal) => ({
    principal,
    sha256: createHash("sha256").update(`secret-of-${principal}`).digest("hex"),
    ...(principal.startsWith("member") && { organization: "acme" }),
  }));
  writeFileSync(file, JSON.stringify(credentials));
  platform = await startPlatform([
    ...["--auth", "required", "--credentials-file", file],
    ...[
      "--quota-reads",
      "1",
      "--quota-writes",
      "1",
      "--quota-streams",
      "1",
      "--quota-organization-factor",
      "2",
    ],
  ]);
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Repeats a call until it is refused, or fails after several calls. */
async function untilRefused<T>(call: () => Promise<T>, isRefused: (answer: T) => boolean): Promise<T> {
  for (let i = 0; i < 20; i++) {
    const answer = await call();
    if (isRefused(answer)) return answer;
  }
  throw new Error("no call was refused");
}

const LIST_AGENTS = "/depute.registry.v1.AgentService/ListAgents";
const listAgents = (name: string) =>
  fetch(`${platform.url}${LIST_AGENTS}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: authorization(name) },
    body: "{}",
  });

test("gRPC gets RESOURCE_EXHAUSTED with RetryInfo", async () => {
  const transport = createGrpcJsTransport(new URL(platform.url).host);
  const client = createClient(AgentService, transport);
  const headers = { authorization: authorization("grpc") };
  const thrown = await untilRefused(
    () => client.listAgents({}, { headers }).catch((error: unknown) => error),
    (answer) => answer instanceof ConnectError,
  );
  transport.close();
  const error = ConnectError.from(thrown);
  expect(error.message).toContain("principal has used its quota of 1 read calls per second");
  const [retry] = error.findDetails(RetryInfoSchema);
  const delayMs = Number(retry?.retryDelay?.seconds) * 1000 + Number(retry?.retryDelay?.nanos) / 1e6;
  expect(delayMs).toBeGreaterThan(0);
  expect(delayMs).toBeLessThanOrEqual(1000);
});

test("Connect gets 429 with Retry-After, and the caller is served after that time", async () => {
  const refused = await untilRefused(
    () => listAgents("connect"),
    ({ status }) => status === 429,
  );
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toMatchObject({ code: "resource_exhausted" });
  await new Promise((resolve) => setTimeout(resolve, 1_050));
  expect((await listAgents("connect")).status).toBe(200);
});

test("curl waits for Retry-After, and succeeds", async () => {
  const args = [
    "-sS",
    "--retry",
    "5",
    "-o",
    join(folder, "answer.json"),
    "-w",
    "%{http_code}",
    "-X",
    "POST",
    "-d",
    "{}",
  ];
  const headers = ["-H", "content-type: application/json", "-H", `authorization: ${authorization("curl")}`];
  await untilRefused(
    () => listAgents("curl"),
    ({ status }) => status === 429,
  );
  const { stdout } = await promisify(execFile)("curl", [
    ...args,
    ...headers,
    `${platform.url}${LIST_AGENTS}`,
  ]);
  expect(stdout).toBe("200");
});

test("a caller that has used its quota does not use another's", async () => {
  await untilRefused(
    () => listAgents("modest"),
    ({ status }) => status === 429,
  );
  expect((await listAgents("other")).status).toBe(200);
});

test("members of an organization share its quota", async () => {
  const names = ["member-1", "member-2", "member-3"];
  const refused = await untilRefused(
    () => Promise.all(names.map(listAgents)),
    (answers) => answers.some(({ status }) => status === 429),
  );
  const texts = await Promise.all(refused.map((answer) => answer.text()));
  expect(texts.some((text) => text.includes("organization_read_calls_per_second"))).toBe(true);
});

test("calls with a proof count for its key, and calls with a forged proof for none", async () => {
  const holder = generateKeypair(engine);
  const stranger = generateKeypair(engine);
  const proof = (key: typeof holder) =>
    createProof(engine, key, { htm: "POST", htu: `${platform.url}${LIST_AGENTS}` });
  const call = (dpop: string) =>
    fetch(`${platform.url}${LIST_AGENTS}`, {
      method: "POST",
      headers: { "content-type": "application/json", dpop },
      body: "{}",
    });
  for (let i = 0; i < 5; i++) {
    const [head, claims] = proof(holder).split(".");
    const forged = `${head}.${claims}.${proof(stranger).split(".")[2]}`;
    expect((await call(forged)).status).toBe(401);
  }
  expect((await call(proof(holder))).status).toBe(200);
  const refused = await untilRefused(
    () => call(proof(holder)),
    ({ status }) => status === 429,
  );
  expect(refused.headers.get("retry-after")).toBe("1");
});

const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

test.each([
  ["cap", "GET", "/cap/agents", undefined],
  ["agenta", "GET", "/agenta/offers", undefined],
  ["asp", "GET", "/v1/asp/sessions", undefined],
  ["delegateos", "GET", "/delegateos/revocations", undefined],
  ["nekte", "POST", "/nekte", rpc("nekte.discover", { level: 0 })],
  ["a2a", "POST", "/a2a/nobody", rpc("GetTask", { id: "t" })],
])("the wire %s refuses in its own form", async (name, method, path, body) => {
  const answer = await untilRefused(
    async () => {
      const response = await fetch(`${platform.url}${path}`, {
        method,
        headers: {
          authorization: authorization(name),
          "a2a-version": "1.0",
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body }),
      });
      const { status, headers } = response;
      return { status, retryAfter: headers.get("retry-after"), text: await response.text() };
    },
    ({ text }) => text.includes("LIMIT_EXCEEDED"),
  );
  expect(answer.text).toContain("retry_after_ms");
  if (body === undefined) expect([answer.status, answer.retryAfter]).toEqual([429, "1"]);
});
