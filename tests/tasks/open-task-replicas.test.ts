import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postgresForTests } from "@depute/store/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../replicas/replica.ts";
import { Stage, TASKS, type TaskJson } from "./stage.ts";

/** This file tests replicas of the tasks service that share the places of open tasks, called as JSON over HTTP. */

const postgres = await postgresForTests();
const folder = mkdtempSync(join(tmpdir(), "depute-open-tasks-"));
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const PLACES = 6;
const ada = { authorization: "Bearer secret-of-ada" };

describe.skipIf(postgres === undefined)("two replicas of the tasks service", () => {
  let stage: Stage;
  beforeAll(async () => {
    const file = join(folder, "credentials.json");
    const sha256 = createHash("sha256").update("secret-of-ada").digest("hex");
    writeFileSync(file, JSON.stringify([{ principal: "ada", organization: "acme", sha256 }]));
    const env = { DEPUTE_CREDENTIALS_FILE: file, DEPUTE_QUOTA_OPEN_TASKS: String(PLACES) };
    stage = await Stage.open(postgres?.url ?? "", 2, env);
  }, 240_000);
  afterAll(() => stage?.close());

  test("share the places of a principal, and a task that ends at one frees its place at the other", async () => {
    const agentId = await stage.agent();
    const create = (n: number): Promise<Json> =>
      stage.at(n).call(`${TASKS}/CreateTask`, { requestId: crypto.randomUUID(), draft: { agentId } }, ada);
    const answers = await Promise.all(Array.from({ length: 5 * PLACES }, (_, n) => create(n)));
    const created = answers.filter(({ code }) => code === undefined);
    expect(created).toHaveLength(PLACES);
    for (const { code, message } of answers.filter((answer) => answer.code !== undefined)) {
      expect(code).toBe("resource_exhausted");
      expect(message).toContain(`its quota of ${PLACES} open tasks`);
    }
    const { id: taskId } = (created[0]?.task ?? {}) as TaskJson;
    await stage.at(0).call(`${TASKS}/CancelTask`, { taskId }, ada);
    expect((await create(1)).code).toBeUndefined();
    expect((await create(0)).code).toBe("resource_exhausted");
  }, 120_000);
});
