import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { call, type Json, startApart, startPlatform, type TestPlatform } from "./platform.ts";

const SECRETS = { auditor: "secret-of-the-auditor", globex: "secret-of-globex" };
const AGENT = "counter";
const GLOBEX = generateKeypair(engine).principal.id;

describe.each([
  ["in one process", startPlatform],
  ["in processes of their own", startApart],
])("the audit log of services %s", (_, start) => {
  let platform: Pick<TestPlatform, "url" | "stop">;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "depute-audit-"));
    const file = join(folder, "credentials.json");
    const digest = (name: keyof typeof SECRETS) => createHash("sha256").update(SECRETS[name]).digest("hex");
    const credentials = [
      { principal: "auditor", sha256: digest("auditor") },
      { principal: GLOBEX, organization: "globex-inc", sha256: digest("globex") },
    ];
    writeFileSync(file, JSON.stringify(credentials));
    platform = await start(["--auth", "required", "--credentials-file", file, "--auditors", "auditor"]);
  });
  afterAll(async () => {
    await platform.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${platform.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const as = (name: keyof typeof SECRETS, requestId = "") => ({
    authorization: `Bearer ${SECRETS[name]}`,
    ...(requestId !== "" && { "depute-request-id": requestId }),
  });
  const records = async (filter: object): Promise<Json[]> => {
    const answer = await post(
      "/depute.tokens.v1.AuditService/ListAuditRecords",
      { filter, pageSize: 1000 },
      as("auditor"),
    );
    return ((await answer.json()) as Json).records ?? [];
  };
  /** Waits for the first record that a filter selects. */
  const recorded = (filter: object): Promise<Json> =>
    vi.waitFor(
      async () => {
        const [record] = await records(filter);
        if (record === undefined) throw new Error(`no record for ${JSON.stringify(filter)}`);
        return record;
      },
      { timeout: 10_000, interval: 50 },
    );

  test("names a mutating call with its caller, wire, resource and request", async () => {
    const body = { requestId: "first-agent", agent: { id: AGENT, version: "1", principal: GLOBEX } };
    const path = "/depute.registry.v1.AgentService/RegisterAgent";
    expect((await post(path, body, as("globex", "request-register"))).status).toBe(200);
    expect(await recorded({ requestId: "request-register", source: "registry" })).toMatchObject({
      ...{ source: "registry", kind: "call", rpc: path.slice(1), resource: `agents/${AGENT}` },
      ...{ caller: GLOBEX, organization: "globex-inc", credential: "AUDIT_CREDENTIAL_SECRET" },
      ...{ address: "127.0.0.1", wire: "connect", decision: "AUDIT_DECISION_ALLOWED" },
    });
  });

  test("names the wire of the client's request, and one request id in all services", async () => {
    const message = { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "count" }] };
    const body = call("SendMessage", { message, configuration: { returnImmediately: true } });
    const headers = { ...as("globex", "request-a2a"), "a2a-version": "1.0" };
    expect(await (await post(`/a2a/${AGENT}`, body, headers)).json()).toHaveProperty("result");
    expect(await recorded({ requestId: "request-a2a", source: "tasks" })).toMatchObject({
      ...{ caller: GLOBEX, wire: "a2a", address: "127.0.0.1", decision: "AUDIT_DECISION_ALLOWED" },
    });
  });

  test("has one request id for the decisions of every service on one call", async () => {
    const key = generateKeypair(engine);
    const path = "/depute.registry.v1.AgentService/RegisterAgent";
    const proof = createProof(engine, key, { htm: "POST", htu: `${platform.url}${path}` });
    const agent = { id: "of-two", version: "1", principal: key.principal.id };
    const headers = { dpop: proof, "depute-request-id": "request-of-two" };
    expect((await post(path, { requestId: "of-two", agent }, headers)).status).toBe(200);
    const filter = { requestId: "request-of-two" };
    const [proven, decided] = [
      await recorded({ ...filter, source: "tokens" }),
      await recorded({ ...filter, source: "registry" }),
    ];
    expect(proven).toMatchObject({ kind: "verify_proof", principal: key.principal.id });
    expect(decided).toMatchObject({ kind: "call", caller: key.principal.id });
  });

  test("contains no credential, and no payload", async () => {
    const key = generateKeypair(engine);
    const path = "/depute.registry.v1.AgentService/RegisterAgent";
    const proof = createProof(engine, key, { htm: "POST", htu: `${platform.url}${path}` });
    const forged = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${"p".repeat(40)}.`;
    const payload = "a-text-of-the-payload";
    const agent = { id: "quiet", version: "1", description: payload, principal: GLOBEX };
    const body = { requestId: "no-secret", agent };
    const attempts: Record<string, string>[] = [
      { dpop: proof },
      { authorization: `Bearer ${forged}` },
      { authorization: `DPoP ${"t".repeat(200)}`, dpop: proof },
      { "x-api-key": "an-unknown-key-of-the-test" },
      as("globex"),
    ];
    for (const headers of attempts) await post(path, body, headers);
    const last = { requestId: "still-none", agent: { ...agent, id: "quiet-too" } };
    const again = await post(path, last, as("globex", "request-after-secrets"));
    expect(again.status).toBe(200);
    await recorded({ requestId: "request-after-secrets" });
    const answer = await post(
      "/depute.tokens.v1.AuditService/ListAuditRecords",
      { pageSize: 1000 },
      as("auditor"),
    );
    const log = await answer.text();
    expect(log).toContain("request-after-secrets");
    const secrets = [...Object.values(SECRETS), ...attempts.flatMap((one) => Object.values(one)), payload];
    for (const secret of secrets.flatMap((text) => text.split(" ")).filter((text) => text.length > 10))
      expect(log.includes(secret), secret).toBe(false);
  });

  test("contains the denied read of a caller without the permission", async () => {
    const path = "/depute.tokens.v1.AuditService/ListAuditRecords";
    expect((await post(path, {}, as("globex", "request-read"))).status).toBe(403);
    expect(await recorded({ requestId: "request-read" })).toMatchObject({
      ...{ source: "tokens", caller: GLOBEX, rpc: path.slice(1) },
      ...{ decision: "AUDIT_DECISION_DENIED", reason: "caller_not_allowed" },
    });
  });

  test("contains refused credentials as an event, without their text", async () => {
    const secret = "not-a-known-secret";
    const headers = { authorization: `Bearer ${secret}`, "depute-request-id": "request-refused" };
    expect((await post("/depute.registry.v1.AgentService/ListAgents", {}, headers)).status).toBe(401);
    const record = await recorded({ requestId: "request-refused" });
    expect(record).toMatchObject({
      ...{ source: "gateway", rpc: "depute.registry.v1.AgentService/ListAgents", address: "127.0.0.1" },
      ...{ decision: "AUDIT_DECISION_DENIED", reason: "unauthenticated" },
    });
    expect(JSON.stringify(record)).not.toContain(secret);
  });

  test("contains no allowed reads", async () => {
    await post("/depute.registry.v1.AgentService/ListAgents", {}, as("globex", "request-list"));
    await post(
      "/depute.registry.v1.AgentService/DeregisterAgent",
      { agentId: AGENT },
      as("globex", "request-last"),
    );
    await recorded({ requestId: "request-last" });
    expect(await records({ requestId: "request-list" })).toEqual([]);
  });
});
