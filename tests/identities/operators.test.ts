import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";
import { startTestIssuer, type TestIssuer } from "@depute/service/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startApart, startPlatform, value } from "../gateway/platform.ts";

const worker = generateKeypair(engine).principal.id;

let folder: string;
let issuer: TestIssuer;
let flags: string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-operators-"));
  issuer = await startTestIssuer(Date.now);
  const identities = [
    { subject: "root", principal: "root@platform", roles: ["operator"] },
    { subject: "ann", principal: "ann@acme", organization: "acme" },
    { subject: "ada", principal: "ada@acme", organization: "acme", organizationRoles: ["auditor"] },
    { subject: "gus", principal: "gus@globex", organization: "globex" },
    { subject: "worker", principal: worker, organization: "acme" },
  ];
  const file = join(folder, "identities.json");
  const issuers = [{ issuer: issuer.url, audiences: ["depute"], identities }];
  writeFileSync(file, JSON.stringify({ issuers }));
  flags = ["--auth", "required", "--identities-file", file];
});
afterAll(async () => {
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe.each([
  ["one process", startPlatform],
  ["a gateway apart from the services", startApart],
])("a login, at %s", (_, start) => {
  let platform: Awaited<ReturnType<typeof startApart | typeof startPlatform>>;
  const as = async (sub: string) => ({
    headers: { authorization: `Bearer ${await issuer.sign({ sub })}` },
  });
  const requestId = () => crypto.randomUUID();

  beforeAll(async () => {
    platform = await start(flags);
    await platform.clients.agents.registerAgent(
      { requestId: requestId(), agent: { id: "clerk", version: "1", principal: worker } },
      await as("worker"),
    );
  }, 60_000);
  afterAll(() => platform.stop());

  /** Returns the roles that the refusal of a call names. */
  async function missing(call: Promise<unknown>): Promise<string | undefined> {
    const error = await call.then(
      () => undefined,
      (thrown: unknown) => ConnectError.from(thrown),
    );
    return error && fromConnectError(error).metadata.roles;
  }

  test("with the role operator proves organizations and grants authorities; others do not", async () => {
    const { organizations, authorities } = platform.clients;
    const proof = { organization: "acme", principal: worker };
    const grant = { authority: "acme.example", principal: worker };
    const refused = organizations.createOrganizationProof(
      { ...proof, requestId: requestId() },
      await as("ann"),
    );
    expect(await missing(refused)).toBe("operator");
    const root = await as("root");
    const proven = await organizations.createOrganizationProof({ ...proof, requestId: requestId() }, root);
    expect(proven.proof).toMatchObject({ ...proof, provenBy: "root@platform" });
    const granted = await authorities.createAuthorityGrant({ ...grant, requestId: requestId() }, root);
    expect(granted.grant).toMatchObject({ ...grant, grantedBy: "root@platform" });
    const ended = await organizations.revokeOrganizationProof(
      { proofId: proven.proof?.id ?? "", requestId: requestId() },
      root,
    );
    expect(ended.proof).toMatchObject({ revokedBy: "root@platform" });
  });

  test("with the role operator widens an agent's bounds; its owner does not", async () => {
    const { workers } = platform.clients;
    const limits = (maxHeld: number) => ({ agentId: "clerk", limits: { maxHeld } });
    await workers.setDelegateLimits(limits(1), await as("worker"));
    const refused = workers.setDelegateLimits(limits(5), await as("worker"));
    await expect(refused).rejects.toThrow(/widen/);
    await workers.setDelegateLimits(limits(5), await as("root"));
    const { limits: now } = await workers.getDelegateLimits({ agentId: "clerk" }, await as("root"));
    expect(now?.maxHeld).toBe(5);
  });

  test("with the role operator ends an agent; another principal does not", async () => {
    const { agents } = platform.clients;
    await agents.registerAgent(
      { requestId: requestId(), agent: { id: "temp", version: "1", principal: worker } },
      await as("worker"),
    );
    await expect(agents.deregisterAgent({ agentId: "temp" }, await as("gus"))).rejects.toThrow(/principal/);
    await agents.deregisterAgent({ agentId: "temp", message: "on request" }, await as("root"));
    const { agent } = await agents.getAgent({ agentId: "temp" }, await as("worker"));
    expect(agent).toMatchObject({ statusMessage: "on request" });
  });

  test("as auditor of an organization reads its records, and no others", async () => {
    const { audit, tokens } = platform.clients;
    for (const sub of ["ann", "gus"])
      await tokens.mintToken({ requestId: requestId() }, await as(sub)).catch(() => undefined);
    const listed = async () => (await audit.listAuditRecords({ pageSize: 100 }, await as("ada"))).records;
    await expect.poll(async () => (await listed()).length, { timeout: 10_000 }).toBeGreaterThan(0);
    expect(new Set((await listed()).map(({ organization }) => organization))).toEqual(new Set(["acme"]));
    const other = audit.listAuditRecords({ filter: { organization: "globex" } }, await as("ada"));
    await expect(other).rejects.toThrow(/may not read the audit log/);
    expect(await missing(audit.listAuditRecords({}, await as("ann")))).toBe("auditor,operator");
    const organizations = async () => {
      const all = await audit.listAuditRecords({ pageSize: 1000 }, await as("root"));
      return all.records.map(({ organization }) => organization);
    };
    await expect.poll(organizations, { timeout: 10_000 }).toContain("globex");
  });

  test("as auditor of an organization explains its tasks, and finds no others", async () => {
    const { tasks, delegations } = platform.clients;
    const created = async (sub: string) => {
      const draft = { agentId: "clerk", description: "copy a page", input: value({}) };
      return (await tasks.createTask({ requestId: requestId(), draft }, await as(sub))).task?.id ?? "";
    };
    const explained = async (taskId: string, sub: string) =>
      delegations
        .explainAuthority({ subject: { case: "taskId", value: taskId } }, await as(sub))
        .then(({ explanation }) => explanation?.principal ?? "")
        .catch((thrown: unknown) => ConnectError.from(thrown).rawMessage);
    const [own, other] = [await created("ann"), await created("gus")];
    expect(await explained(own, "ada")).toBe("ann@acme");
    expect(await explained(other, "ada")).toBe(await explained("no-such-task", "ada"));
    expect(await explained(own, "gus")).toBe("the task does not exist, or the caller may not see it");
  });
});
