import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownPostgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Backend, backendOf, Deployment, shell } from "./deployment.ts";
import { fill, testimony } from "./testimony.ts";

const LONG = 300_000;

let folder = "";
let deployments: Deployment[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-backup-"));
});
afterEach(async () => {
  await Promise.all(deployments.map((each) => each.stop()));
  deployments = [];
});
const postgres = await ownPostgresForTests();
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const at = (name: string) => join(folder, name);

async function start(dataDir: string, backend: Backend = backendOf()): Promise<Deployment> {
  const deployment = await Deployment.start(dataDir, backend);
  deployments.push(deployment);
  return deployment;
}

describe("a backup of SQLite files, made while the platform runs", () => {
  test(
    "restores tokens, revocations and logs into a new folder",
    async () => {
      const platform = await start(at("data"));
      const { live, revoked } = await fill(platform);
      const registered: string[] = [];
      let isWriting = true;
      const writer = (async () => {
        for (let n = 0; isWriting; n++) {
          const answer = await platform.register(`agent-${n}`);
          if (answer === 200) registered.push(`agent-${n}`);
        }
      })();
      while (registered.length < 20) await new Promise((resolve) => setTimeout(resolve, 20));
      const before = [...registered];
      const made = await platform.run(["backup", "--to", at("backup"), "--keys-to", at("keys")]);
      expect(made, made.err).toMatchObject({ code: 0, err: "" });
      isWriting = false;
      await writer;
      const expected = await testimony(platform, live, revoked);
      expect(expected.audit).toBe(0);
      expect(Number(expected.log.treeSize)).toBeGreaterThan(0);
      await platform.stop();
      rmSync(at("data"), { recursive: true });

      const restored = await platform.run(["restore", "--from", at("backup"), "--keys-from", at("keys")], {
        DEPUTE_DATA_DIR: at("restored"),
      });
      expect(restored, restored.err).toMatchObject({ code: 0, err: "" });
      expect(statSync(at("restored")).mode & 0o777).toBe(0o700);
      const again = await start(at("restored"));
      for (const name of [live, revoked]) copyFileSync(join(platform.folder, name), join(again.folder, name));
      const found = await testimony(again, live, revoked);
      expect(found).toEqual(expected);
      expect(found.live).not.toEqual(found.revoked);
      expect(found.revoked).toMatch(/revoked/i);
      for (const id of [before[0], before.at(-1)])
        expect(await again.run(["agents", "describe", id ?? ""])).toMatchObject({ code: 0 });
    },
    LONG,
  );

  test(
    "has no keys unless another folder is named for them, and names keys and settings",
    async () => {
      const platform = await start(at("plain"), backendOf({ DEPUTE_METRICS_TOKEN: "hidden" }));
      const { out } = await platform.run(["backup", "--to", at("plain-backup")]);
      const check = (await platform.run(["upgrade", "--check"])).out;
      const stores = readdirSync(at("plain-backup")).filter((name) => name.endsWith(".sqlite"));
      for (const name of stores) expect(check).toContain(`${name.replace(".sqlite", "")}: at `);
      expect(check).not.toContain("does not exist");
      expect(out).toContain("the keys callback.key, card.key, master.key, root.key");
      expect(readdirSync(at("plain-backup")).filter((name) => name.endsWith(".key"))).toEqual([]);
      const manifest = readFileSync(at("plain-backup/manifest.json"), "utf8");
      expect(manifest).not.toContain("hidden");
      const { keys, settings } = JSON.parse(manifest);
      expect(keys.map(({ name }: { name: string }) => name)).toContain("root.key");
      expect(settings).toMatchObject({ metricsToken: "set", dataDir: at("plain") });
      const { code, err } = await platform.run(["backup", "--to", at("same"), "--keys-to", at("same")]);
      expect([code, err]).toEqual([2, expect.stringContaining("name another folder")]);
      expect(existsSync(at("same"))).toBe(false);
    },
    LONG,
  );
});

describe("a restore refuses", () => {
  beforeAll(async () => {
    const platform = await Deployment.start(at("origin"), backendOf());
    const { code, err } = await platform.run(["backup", "--to", at("good"), "--keys-to", at("good-keys")]);
    await platform.stop();
    expect(code, err).toBe(0);
  }, LONG);

  const edit = (
    folder: string,
    change: (manifest: { files: { name: string }[]; format: number }) => void,
  ) => {
    const file = join(folder, "manifest.json");
    const manifest = JSON.parse(readFileSync(file, "utf8"));
    change(manifest);
    writeFileSync(file, JSON.stringify(manifest));
  };

  test.each<[string, (backup: string) => void, string]>([
    ["an altered file", (folder) => appendFileSync(join(folder, "tokens.sqlite"), "x"), "its digest differs"],
    ["a missing file", (folder) => rmSync(join(folder, "tokens.sqlite")), "is missing"],
    ["an unfinished backup", (folder) => rmSync(join(folder, "manifest.json")), "the backup is not complete"],
    [
      "a backup of another form",
      (folder) =>
        edit(folder, (manifest) => {
          manifest.format = 2;
        }),
      "its format is not 1",
    ],
    [
      "a path that leaves the folder",
      (folder) =>
        edit(folder, ({ files }) => {
          if (files[0]) files[0].name = "../x";
        }),
      "malformed",
    ],
  ])("%s", async (name, change, reason) => {
    const backup = at(name.replaceAll(" ", "-"));
    cpSync(at("good"), backup, { recursive: true });
    change(backup);
    const { code, err } = await shell(["restore", "--from", backup, "--data-dir", `${backup}-data`]);
    expect([code, err]).toEqual([2, expect.stringContaining(reason)]);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(existsSync(`${backup}-data`)).toBe(false);
  });

  test("a data folder that has records", async () => {
    mkdirSync(at("full"));
    writeFileSync(at("full/tokens.sqlite"), "kept");
    const { code, err } = await shell(["restore", "--from", at("good"), "--data-dir", at("full")]);
    expect([code, err]).toEqual([2, expect.stringContaining("is not empty")]);
    expect(readFileSync(at("full/tokens.sqlite"), "utf8")).toBe("kept");
  });

  test("other keys than those of the records", async () => {
    cpSync(at("good-keys"), at("other-keys"), { recursive: true });
    writeFileSync(at("other-keys/root.key"), "x");
    const words = [
      "restore",
      "--from",
      at("good"),
      "--keys-from",
      at("other-keys"),
      "--data-dir",
      at("never"),
    ];
    expect(await shell(words)).toMatchObject({ code: 2, err: expect.stringContaining("its digest differs") });
  });
});

describe.runIf(postgres !== undefined)("the recipe for Postgres", () => {
  const recipe = (word: string) => {
    const page = readFileSync("docs/operations.md", "utf8");
    const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, commands = ""]) => commands);
    const found = blocks.find((block) => block.includes(word));
    if (found === undefined) throw new Error(`docs/operations.md has no commands with ${word}`);
    return found;
  };

  test(
    "restores tokens, revocations and logs into another database",
    async () => {
      const url = postgres?.url ?? "";
      const backend = backendOf({ DEPUTE_POSTGRES_URL: url });
      const platform = await start(at("pg-data"), backend);
      const { live, revoked } = await fill(platform);
      const refused = await platform.run(["backup", "--to", at("pg-refused")]);
      expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("pg_dump")]);
      const check = await platform.run(["upgrade", "--check"]);
      expect(check.out, check.err).toContain("tokens: at ");
      expect(check.out).toContain("no migration is pending");
      const expected = await testimony(platform, live, revoked);
      const run = (script: string, database: string) =>
        shell([], { DEPUTE_POSTGRES_URL: database, DATA: at("pg-data"), BACKUP: at("pg-backup") }, script);
      const dumped = await run(recipe("pg_dump"), url);
      expect(dumped.code, dumped.err).toBe(0);
      await platform.stop();

      const other = new URL(url.replace("postgres:///", "postgres://host/"));
      other.pathname = "/restored";
      const otherUrl = other.href.replace("postgres://host/", "postgres:///");
      const created = await shell([], {}, `psql --quiet --command 'CREATE DATABASE restored' '${url}'`);
      expect(created.code, created.err).toBe(0);
      rmSync(at("pg-data"), { recursive: true });
      const restored = await run(recipe("pg_restore"), otherUrl);
      expect(restored.code, restored.err).toBe(0);
      const again = await start(at("pg-data"), backendOf({ DEPUTE_POSTGRES_URL: otherUrl }));
      for (const name of [live, revoked]) copyFileSync(join(platform.folder, name), join(again.folder, name));
      expect(await testimony(again, live, revoked)).toEqual(expected);
    },
    LONG,
  );
});
