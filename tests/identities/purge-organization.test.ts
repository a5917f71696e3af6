import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { json } from "node:stream/consumers";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, test } from "vitest";
import { offerOf, requestOf } from "../agenta/market.ts";
import { userOf } from "../cli/depute.ts";
import { type Json, startPlatform, type TestPlatform } from "../gateway/platform.ts";

const ORGANIZATION = "acme-organization";
const PRINCIPALS = {
  acme: generateKeypair(engine).principal.id,
  seller: generateKeypair(engine).principal.id,
  operator: "root@platform",
};
type Party = keyof typeof PRINCIPALS;
/** A word in every text that acme's records contain. */
const WORD = "acmesecretword";
const KEPT = "othersecretword";

let folder: string;
let platform: TestPlatform;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-purge-"));
  const file = join(folder, "credentials.json");
  const entry = (party: Party, more: object) => ({
    ...{ principal: PRINCIPALS[party], sha256: createHash("sha256").update(party).digest("hex") },
    ...more,
  });
  writeFileSync(
    file,
    JSON.stringify([
      entry("acme", { organization: ORGANIZATION }),
      entry("seller", { organization: "globex" }),
      entry("operator", { roles: ["operator"] }),
    ]),
  );
  platform = await startPlatform(["--auth", "required", "--credentials-file", file], { dataDir: folder });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function post(party: Party, path: string, body: object): Promise<Json> {
  const answer = await platform.post(path, body, { authorization: `Bearer ${party}` });
  const document = (await answer.json()) as Json;
  if (!answer.ok) throw new Error(`${path}: ${JSON.stringify(document)}`);
  return document;
}
const call = (party: Party, method: string, body: object) => post(party, `/depute.${method}`, body);
const requestId = () => crypto.randomUUID();

async function createTask(party: Party, agentId: string, description: string): Promise<string> {
  const { task, taskId } = await call(party, "tasks.v1.TaskService/CreateTask", {
    requestId: requestId(),
    draft: { agentId, description, input: { words: description } },
  });
  return task?.id ?? taskId;
}

/** Returns the tables of a closed database in which a text occurs, in any column. */
function tablesWith(database: string, words: string): string[] {
  const opened = new DatabaseSync(join(folder, database), { readOnly: true });
  const found: string[] = [];
  const tables = opened.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  for (const { name: table } of tables) {
    const columns = opened.prepare("SELECT name FROM pragma_table_info(?)").all(String(table));
    for (const { name: column } of columns) {
      const query = `SELECT 1 FROM "${table}" WHERE instr(CAST("${column}" AS BLOB), CAST(? AS BLOB)) > 0 LIMIT 1`;
      if (opened.prepare(query).get(words) !== undefined) found.push(`${table}.${column}`);
    }
  }
  opened.close();
  return found;
}

test("a purge by an operator removes the words of one organization from all stores, and keeps others", async () => {
  const agent = (id: string, party: Party, organization: string) =>
    call(party, "registry.v1.AgentService/RegisterAgent", {
      requestId: requestId(),
      agent: { id, version: "1", organization, principal: PRINCIPALS[party] },
    });
  await agent("acme-agent", "acme", ORGANIZATION);
  await agent("globex-agent", "seller", "globex");
  const taskId = await createTask("acme", "globex-agent", WORD);
  const keptId = await createTask("seller", "globex-agent", KEPT);
  await call("acme", "tasks.v1.ArtifactService/CreateArtifact", {
    ...{ taskId, name: WORD, sizeBytes: "1", sha256: createHash("sha256").update("x").digest("base64") },
  });
  const envelope = {
    id: WORD,
    data: Buffer.from(`"${WORD}"`).toString("base64"),
    ttlS: 600,
    permissions: {},
  };
  await call("acme", "tasks.v1.ContextService/ShareContext", { requestId: requestId(), envelope });
  await call("acme", "tasks.v1.MessageService/SendMessage", {
    requestId: requestId(),
    message: {
      message: {
        ...{ taskId: "talk", senderId: "acme-agent", recipientId: "globex-agent", content: WORD },
        attachments: {},
      },
    },
  });
  const offer = offerOf({ seller_agent: { agent_id: "globex-agent", organization_id: "globex" } });
  await post("seller", "/agenta/offers", offer);
  const execution = requestOf(offer, {
    ...{ buyer_agent: { agent_id: "acme-agent", organization_id: ORGANIZATION } },
    ...{ seller_agent_id: "globex-agent", input: { text: WORD } },
  });
  await post("acme", "/agenta/execution_requests", execution);

  const refused = await platform.post(
    "/depute.tasks.v1.TaskService/PurgeOrganization",
    { organization: ORGANIZATION },
    { authorization: "Bearer acme" },
  );
  expect([refused.status, await refused.text()]).toEqual([
    403,
    expect.stringContaining('"roles":"operator"'),
  ]);

  let deleted = 0;
  await expect
    .poll(
      async () => {
        const { deletedCount = "0", more = false } = await call(
          "operator",
          "tasks.v1.TaskService/PurgeOrganization",
          { organization: ORGANIZATION, reason: "on request", maxCount: 2 },
        );
        deleted += Number(deletedCount);
        return !more && deletedCount === "0";
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  expect(deleted).toBeGreaterThanOrEqual(4);
  const kept = await call("seller", "tasks.v1.TaskService/GetTask", { taskId: keptId });
  expect(kept.task.description).toBe(KEPT);

  // Each other service holds the organization's records, such as kept keys and artifacts, until that service is purged
  // too.
  for (const [party, words] of [
    ["acme", WORD],
    ["seller", KEPT],
  ] as const) {
    await call(party, "tokens.v1.KeyService/CreateKey", { requestId: requestId(), agentId: words });
    const content = Buffer.from(words).toString("base64");
    await call(party, "verifier.v1.ResultService/StoreArtifact", { content, mediaType: words });
  }
  for (const [method, deleted] of [
    ["verifier.v1.ContractService", { artifacts: 1 }],
    ["tokens.v1.DelegationService", { "kept keys": 1 }],
    ["registry.v1.OrganizationService", { agents: 1, "agent versions": 1, members: 1 }],
  ] as const) {
    expect(await purgeByHand(`/depute.${method}/PurgeOrganization`)).toEqual(deleted);
  }
  const user = userOf(platform.url);
  const secret = join(user.folder, "secret");
  writeFileSync(secret, "operator", { mode: 0o600 });
  const words = ["organizations", "purge", ORGANIZATION, "--secret-file", secret, "-o"];
  const { code, out } = await user.run([...words, "json"]);
  const lines = out.trim().split("\n");
  const services = lines.map((line) => JSON.parse(line) as Json);
  expect([code, services.map(({ service, deletedCount, more }) => [service, deletedCount, more])]).toEqual([
    0,
    ["tasks", "verifier", "tokens", "registry"].map((service) => [service, 0, false]),
  ]);
  for (const { service, remaining } of services) {
    if (service === "tasks") continue;
    expect(remaining.length).toBeGreaterThan(2);
    for (const { reason } of remaining) expect(reason).not.toBe("");
  }
  expect((await user.run([...words, "table"])).out).toMatch(
    /^SERVICE +DELETED +MORE +RECORDS\ntasks +0 +false/,
  );
  user.remove();
  await expect
    .poll(async () => {
      const filter = { resource: `organizations/${ORGANIZATION}`, caller: PRINCIPALS.operator };
      const { records } = await call("operator", "tokens.v1.AuditService/ListAuditRecords", { filter });
      return [...new Set((records ?? []).map(({ source }: Json) => source))].sort();
    })
    .toEqual(["registry", "tasks", "tokens", "verifier"]);

  await platform.stop();
  const databases = readdirSync(folder).filter((name) => name.endsWith(".sqlite"));
  for (const name of ["tasks", "registry", "tokens", "verifier"]) {
    expect(databases).toContain(`${name}.sqlite`);
    expect([name, tablesWith(`${name}.sqlite`, WORD)]).toEqual([name, []]);
    const remaining = name === "tokens" ? ["audit.call"] : [];
    expect([name, tablesWith(`${name}.sqlite`, ORGANIZATION)]).toEqual([name, remaining]);
  }
  expect(tablesWith("tasks.sqlite", KEPT)).not.toEqual([]);
  expect(tablesWith("tokens.sqlite", KEPT)).toEqual(["kept_keys.agent_id"]);
  expect(tablesWith("verifier.sqlite", KEPT)).toContain("artifacts.content");
  expect(tablesWith("registry.sqlite", "globex-agent")).toContain("agents.id");
}, 180_000);

/** Purges with Node's own HTTP client, which shares no code with the platform; returns the deleted records by kind. */
async function purgeByHand(path: string): Promise<Record<string, number>> {
  const deleted: Record<string, number> = {};
  for (let calls = 0; calls < 20; calls++) {
    const sent = request(`${platform.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer operator" },
    });
    sent.end(JSON.stringify({ requestId: requestId(), organization: ORGANIZATION, maxCount: 1 }));
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    const document = (await json(answer)) as Json;
    expect([answer.statusCode, document]).toEqual([200, expect.anything()]);
    for (const { kind, count } of document.deleted ?? []) {
      deleted[kind] = (deleted[kind] ?? 0) + Number(count);
    }
    if (document.more !== true) return deleted;
  }
  throw new Error("the purge does not end");
}
