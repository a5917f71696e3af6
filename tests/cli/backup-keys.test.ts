import { execFileSync } from "node:child_process";
import { createDecipheriv, scryptSync } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { backendOf, Deployment, shell } from "./deployment.ts";
import { fill, testimony } from "./testimony.ts";

const LONG = 300_000;
const PASSPHRASE = "correct horse battery staple";

const folder = mkdtempSync(join(tmpdir(), "depute-backup-keys-"));
const at = (name: string) => join(folder, name);
let deployments: Deployment[] = [];
afterEach(async () => {
  await Promise.all(deployments.map((each) => each.stop()));
  deployments = [];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  writeFileSync(at("passphrase"), `${PASSPHRASE}\n`, { mode: 0o600 });
  writeFileSync(at("other-passphrase"), "correct horse battery stable\n", { mode: 0o600 });
  writeFileSync(at("short"), "short\n");
  const openssl = (...words: string[]) => execFileSync("openssl", words, { stdio: "pipe" });
  openssl("genpkey", "-algorithm", "X25519", "-out", at("identity.pem"));
  openssl("pkey", "-in", at("identity.pem"), "-pubout", "-out", at("recipient.pem"));
  openssl("genpkey", "-algorithm", "X25519", "-out", at("other-identity.pem"));
});

async function start(dataDir: string): Promise<Deployment> {
  const deployment = await Deployment.start(dataDir, backendOf());
  deployments.push(deployment);
  return deployment;
}

const restore = (backup: string, data: string, words: readonly string[]) =>
  shell(["restore", "--from", backup, "--data-dir", data, ...words]);
const byPassphrase = (name = "passphrase") => ["--keys-passphrase-file", at(name)];

/** Opens a sealed file as its head says, with node:crypto alone. */
function openedBy(file: string, passphrase: string): { name: string; content: string }[] {
  const { head, sealed } = JSON.parse(readFileSync(file, "utf8"));
  const { N, r, p, salt, nonce } = JSON.parse(head);
  const bytes = Buffer.from(sealed, "base64url");
  const cost = { N, r, p, maxmem: 256 * N * r };
  const key = scryptSync(passphrase, Buffer.from(salt, "base64url"), 32, cost);
  const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64url"));
  decipher.setAAD(Buffer.from(head)).setAuthTag(bytes.subarray(-16));
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(0, -16)), decipher.final()]).toString());
}

describe("a backup with sealed keys", () => {
  test(
    "restores a platform whose tokens and logs verify, with its secret alone",
    async () => {
      const platform = await start(at("data"));
      const { live, revoked } = await fill(platform);
      const made = await platform.run(["backup", "--to", at("backup"), "--keys", ...byPassphrase()]);
      expect(made, made.err).toMatchObject({ code: 0, err: "" });
      const recipient = ["--keys-recipient-file", at("recipient.pem")];
      const second = await platform.run(["backup", "--to", at("for-recipient"), "--keys", ...recipient]);
      expect(second, second.err).toMatchObject({ code: 0, err: "" });
      const expected = await testimony(platform, live, revoked);
      await platform.stop();

      for (const backup of [at("backup"), at("for-recipient")]) {
        expect(readdirSync(backup).filter((name) => name.endsWith(".key"))).toEqual([]);
        for (const name of ["root.key", "master.key"])
          for (const file of readdirSync(backup))
            expect(
              readFileSync(join(backup, file)).includes(readFileSync(at(`data/${name}`), "utf8").trim()),
            ).toBe(false);
      }
      expect(statSync(at("backup/keys.sealed")).mode & 0o777).toBe(0o600);
      const root = openedBy(at("backup/keys.sealed"), PASSPHRASE).find(({ name }) => name === "root.key");
      expect(Buffer.from(root?.content ?? "", "base64url")).toEqual(readFileSync(at("data/root.key")));

      const restored = await restore(at("for-recipient"), at("restored-2"), [
        "--keys-identity-file",
        at("identity.pem"),
      ]);
      expect(restored, restored.err).toMatchObject({ code: 0, err: "" });
      for (const name of readdirSync(at("data")).filter((each) => each.endsWith(".key")))
        expect(readFileSync(at(`restored-2/${name}`))).toEqual(readFileSync(at(`data/${name}`)));
      rmSync(at("data"), { recursive: true });

      const again = await restore(at("backup"), at("restored"), byPassphrase());
      expect(again, again.err).toMatchObject({ code: 0, err: "" });
      expect(statSync(at("restored/root.key")).mode & 0o777).toBe(0o600);
      const newer = await start(at("restored"));
      for (const name of [live, revoked]) copyFileSync(join(platform.folder, name), join(newer.folder, name));
      expect(await testimony(newer, live, revoked)).toEqual(expected);
    },
    LONG,
  );

  test.each<[string, (backup: string) => void, readonly string[], string]>([
    ["another passphrase", () => {}, byPassphrase("other-passphrase"), "the passphrase does not open it"],
    [
      "another identity",
      () => {},
      ["--keys-identity-file", at("other-identity.pem")],
      "a passphrase sealed it",
    ],
    [
      "a truncated file",
      (backup) => truncateSync(join(backup, "keys.sealed"), 300),
      byPassphrase(),
      "its digest differs",
    ],
    [
      "a truncated file that the manifest names",
      (backup) => {
        truncateSync(join(backup, "keys.sealed"), 300);
        const manifest = join(backup, "manifest.json");
        const document = JSON.parse(readFileSync(manifest, "utf8"));
        const digest = execFileSync("sha256sum", [join(backup, "keys.sealed")], { encoding: "utf8" });
        document.sealedKeys = { ...document.sealedKeys, bytes: 300, sha256: digest.slice(0, 64) };
        writeFileSync(manifest, JSON.stringify(document));
      },
      byPassphrase(),
      "it is not a whole file of the form depute-sealed-keys-v1",
    ],
    ["a missing file", (backup) => rmSync(join(backup, "keys.sealed")), byPassphrase(), "is missing"],
    ["two kinds of keys", () => {}, [...byPassphrase(), "--keys-from", at("backup")], "exclude one another"],
  ])("is not restored with %s", async (name, change, words, reason) => {
    const backup = at(name.replaceAll(" ", "-"));
    cpSync(at("backup"), backup, { recursive: true });
    change(backup);
    const { code, err } = await restore(backup, `${backup}-data`, words);
    expect([code, err]).toEqual([2, expect.stringContaining(reason)]);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).not.toContain(PASSPHRASE);
    expect(existsSync(`${backup}-data`)).toBe(false);
  });

  test("is restored without keys where no secret is named", async () => {
    const { code, out } = await restore(at("backup"), at("without-keys"), []);
    expect(code).toBe(0);
    expect(out).toContain("it has no keys: callback.key, card.key, master.key");
    expect(readdirSync(at("without-keys")).filter((name) => name.endsWith(".key"))).toEqual([]);
  });

  test.each<[string, readonly string[], string]>([
    ["keys without a secret", ["--keys"], "--keys needs a secret"],
    ["a secret without keys", byPassphrase(), "add --keys, or omit the secret"],
    [
      "two secrets",
      ["--keys", ...byPassphrase(), "--keys-recipient-file", at("recipient.pem")],
      "exclude one another",
    ],
    ["a short passphrase", ["--keys", ...byPassphrase("short")], "it needs 12 to 1024"],
    ["a private key as recipient", ["--keys", "--keys-recipient-file", at("short")], "X25519 public key"],
    ["a missing file", ["--keys", ...byPassphrase("nowhere")], "cannot be read"],
  ])("is not made with %s", async (name, words, reason) => {
    const to = at(`never-${name}`);
    const { code, err } = await shell(["backup", "--data-dir", at("restored"), "--to", to, ...words]);
    expect([code, err]).toEqual([2, expect.stringContaining(reason)]);
    expect(existsSync(to)).toBe(false);
  });
});
