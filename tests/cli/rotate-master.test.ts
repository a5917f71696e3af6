import { type ChildProcess, spawn } from "node:child_process";
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ownPostgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type Backend, backendOf, Deployment, shell } from "./deployment.ts";
import { MAIN } from "./depute.ts";

const LONG = 300_000;
/** Number of kept keys that the test adds: so many that the command still seals them when the test kills it. */
const FILLERS = 30_000;

const folder = mkdtempSync(join(tmpdir(), "depute-rotate-"));
const at = (name: string) => join(folder, name);
let deployments: Deployment[] = [];
const postgres = await ownPostgresForTests();
afterEach(async () => {
  await Promise.all(deployments.map((each) => each.stop()));
  deployments = [];
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(dataDir: string, backend: Backend = backendOf()): Promise<Deployment> {
  const deployment = await Deployment.start(dataDir, backend);
  deployments.push(deployment);
  return deployment;
}

/** Creates a kept key, which the platform seals with its master key. */
async function createKey(platform: Deployment): Promise<void> {
  const { code, err } = await platform.run(["keys", "create"]);
  expect(code, err).toBe(0);
}

const keyOf = (file: string) => Buffer.from(readFileSync(file, "utf8").trim(), "base64url");
const contextOf = (id: string, principal: string) => JSON.stringify({ id, owner: "filler", principal });

/** Adds kept keys that the master key seals, by AES-256-GCM of Node.js. */
function addKeys(database: DatabaseSync, master: Buffer): void {
  const insert = database.prepare(
    `INSERT INTO kept_keys (position, id, owner, organization, request_id, digest, principal, agent_id, sealed, state,
      successor_id, create_ms, end_ms) VALUES (?, ?, 'filler', '', ?, '', ?, '', ?, 'revoked', '', 0, 1)`,
  );
  database.exec("BEGIN");
  for (let n = 0; n < FILLERS; n++) {
    const [id, principal] = [`filler-${n}`, `principal-${n}`];
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", master, nonce);
    cipher.setAAD(Buffer.from(contextOf(id, principal)));
    const sealed = Buffer.concat([nonce, cipher.update(secretOf(n)), cipher.final(), cipher.getAuthTag()]);
    insert.run(1_000_000 + n, id, id, principal, sealed.toString("base64url"));
  }
  database.exec("COMMIT");
}

const secretOf = (n: number) => Buffer.alloc(32, n % 251);

/** Counts the added keys that this master key opens to their secret. */
function countOpened(database: DatabaseSync, master: Buffer): number {
  const rows = database.prepare("SELECT id, principal, sealed FROM kept_keys WHERE owner = 'filler'").all();
  return rows.filter(({ id, principal, sealed }) => {
    const bytes = Buffer.from(String(sealed), "base64url");
    const decipher = createDecipheriv("aes-256-gcm", master, bytes.subarray(0, 12));
    decipher.setAAD(Buffer.from(contextOf(String(id), String(principal))));
    decipher.setAuthTag(bytes.subarray(-16));
    try {
      const opened = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
      return opened.equals(secretOf(Number(String(id).split("-")[1])));
    } catch {
      return false;
    }
  }).length;
}

/** Kills the process as soon as it has changed a row. */
async function killAtWork(child: ChildProcess, database: DatabaseSync): Promise<void> {
  const first = database.prepare("SELECT sealed FROM kept_keys WHERE id = 'filler-0'");
  const before = first.get()?.sealed;
  while (first.get()?.sealed === before) {
    if (child.exitCode !== null) throw new Error("the command ended before it changed a row");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  child.kill("SIGKILL");
  await once(child, "exit");
}

test(
  "a killed rotation continues, and no platform starts in between",
  async () => {
    const dataDir = at("data");
    const platform = await start(dataDir);
    await createKey(platform);
    await platform.stop();
    const old = keyOf(join(dataDir, "master.key"));
    const database = new DatabaseSync(join(dataDir, "tokens.sqlite"));
    addKeys(database, old);

    const words = ["keys", "rotate-master", "--data-dir", dataDir];
    await killAtWork(spawn(process.execPath, [MAIN, ...words], { stdio: "inherit" }), database);
    const next = keyOf(join(dataDir, "master.next.key"));
    const [withOld, withNew] = [countOpened(database, old), countOpened(database, next)];
    expect(withOld).toBeGreaterThan(0);
    expect(withNew).toBeGreaterThan(0);
    expect(withOld + withNew).toBe(FILLERS);
    const refused = await shell(["start", "--data-dir", dataDir], backendOf({ DEPUTE_GATEWAY_PORT: "0" }));
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("another master key") });

    expect(await shell(words)).toMatchObject({ code: 0, err: "" });
    expect(keyOf(join(dataDir, "master.key"))).toEqual(next);
    expect([countOpened(database, old), countOpened(database, next)]).toEqual([0, FILLERS]);
    database.close();
    await createKey(await start(dataDir));
  },
  LONG,
);

describe("a rotation is refused", () => {
  const dataDir = at("refusals");
  test.each<[string, string[], string]>([
    ["without records", ["--data-dir", at("nothing")], "name the data folder with --data-dir"],
    [
      "with a new file for a key of the data folder",
      ["--data-dir", dataDir, "--new-master-key-file", at("x")],
      "leave out --new-master-key-file",
    ],
    [
      "without a new file for a key elsewhere",
      ["--data-dir", dataDir, "--master-key-file", at("x")],
      "name the new one with --new-master-key-file",
    ],
  ])("%s", async (_, flags, message) => {
    const { code, err } = await shell(["keys", "rotate-master", ...flags]);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });

  test(
    "while the platform runs",
    async () => {
      const platform = await start(dataDir);
      const before = readFileSync(join(dataDir, "master.key"), "utf8");
      const { code, err } = await platform.run(["keys", "rotate-master"]);
      expect([code, err]).toEqual([1, expect.stringMatching(/lock|in use|another process|owns/)]);
      expect(readFileSync(join(dataDir, "master.key"), "utf8")).toBe(before);
      await createKey(platform);
    },
    LONG,
  );
});

describe.runIf(postgres !== undefined)("a rotation on Postgres, with keys in the database", () => {
  test(
    "seals kept keys and the platform's own keys, and the old key starts no platform",
    async () => {
      const [old, next] = [at("old.key"), at("next.key")];
      for (const file of [old, next])
        writeFileSync(file, randomBytes(32).toString("base64url"), { mode: 0o600 });
      const backendWith = (DEPUTE_MASTER_KEY_FILE: string) =>
        backendOf({ DEPUTE_POSTGRES_URL: postgres?.url ?? "", DEPUTE_MASTER_KEY_FILE });
      const platform = await start(at("pg-data"), backendWith(old));
      await createKey(platform);
      const rotatedRoot = await platform.run(["keys", "rotate-root"]);
      expect(rotatedRoot, rotatedRoot.err).toMatchObject({ code: 0 });
      const { out: principal } = await platform.run(["keys", "new", "me.key"]);
      const flags = ["--delegatee", principal.trim(), "--capability", "web:search:**", "--budget", "10"];
      const { out: token, err } = await platform.run(["tokens", "create", ...flags]);
      expect(token, err).not.toBe("");
      await platform.stop();

      const rotated = await platform.run(["keys", "rotate-master", "--new-master-key-file", next]);
      expect(rotated, rotated.err).toMatchObject({ code: 0 });
      const settings = {
        ...backendWith(old),
        DEPUTE_GATEWAY_PORT: "0",
        DEPUTE_DATA_DIR: at("pg-data"),
      };
      const refused = await shell(["start"], settings);
      expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("another master key") });

      // The token's root signature verifies only if the rows of the root keys are the same as before.
      const again = await start(at("pg-data"), backendWith(next));
      await createKey(again);
      writeFileSync(join(again.folder, "token.txt"), token);
      const inspected = await again.run(["tokens", "inspect", "@token.txt"]);
      expect(inspected, inspected.err).toMatchObject({ code: 0 });
      const minted = await again.run(["tokens", "create", ...flags]);
      expect(minted, minted.err).toMatchObject({ code: 0 });
    },
    LONG,
  );
});
