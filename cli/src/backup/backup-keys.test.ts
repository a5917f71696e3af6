import { createDecipheriv, createHash, generateKeyPairSync, scryptSync } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
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
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { CommandError } from "../exit-codes.ts";
import { backup } from "./backup.ts";
import { restore } from "./restore.ts";

const PASSPHRASE = "correct horse battery staple";
const KEYS = ["master.key", "root.key"];
const folder = mkdtempSync(join(tmpdir(), "depute-backup-keys-"));
const at = (name: string) => join(folder, name);
const byPassphrase = (name = "passphrase") => ["--keys-passphrase-file", at(name)];
const forRecipient = ["--keys-recipient-file", at("recipient.pem")];
const byIdentity = (name = "identity.pem") => ["--keys-identity-file", at(name)];

beforeAll(async () => {
  mkdirSync(at("data"));
  const database = new DatabaseSync(at("data/tokens.sqlite"));
  database.exec("CREATE TABLE t (id TEXT); INSERT INTO t VALUES ('kept')");
  database.close();
  for (const name of KEYS) writeFileSync(at(`data/${name}`), `${name[0]?.repeat(43)}\n`, { mode: 0o600 });
  writeFileSync(at("passphrase"), `${PASSPHRASE}\n`);
  writeFileSync(at("other-passphrase"), "correct horse battery stable\n");
  writeFileSync(at("short"), "short\n");
  for (const prefix of ["", "other-"]) {
    const { publicKey, privateKey } = generateKeyPairSync("x25519");
    writeFileSync(at(`${prefix}recipient.pem`), publicKey.export({ type: "spki", format: "pem" }));
    writeFileSync(at(`${prefix}identity.pem`), privateKey.export({ type: "pkcs8", format: "pem" }));
  }
  vi.spyOn(console, "log").mockImplementation(() => {});
  await backup(["--data-dir", at("data"), "--to", at("sealed"), "--keys", ...byPassphrase()]);
  await backup(["--data-dir", at("data"), "--to", at("for-recipient"), "--keys", ...forRecipient]);
  await backup(["--data-dir", at("data"), "--to", at("plain")]);
}, 120_000);
let printed: string[] = [];
beforeEach(() => {
  printed = [];
  vi.spyOn(console, "log").mockImplementation((line) => void printed.push(String(line)));
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const restored = (from: string, data: string, words: readonly string[]) =>
  restore(["--from", from, "--data-dir", data, ...words]);

/** Opens a sealed file as its head describes, with node:crypto alone. */
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
  test.each([
    ["its passphrase", "sealed", byPassphrase()],
    ["the recipient's identity", "for-recipient", byIdentity()],
  ])("is restored with %s", async (name, from, words) => {
    const data = at(`restored ${name}`);
    expect(await restored(at(from), data, words)).toBe(0);
    for (const key of KEYS) {
      expect(readFileSync(join(data, key))).toEqual(readFileSync(at(`data/${key}`)));
      expect(statSync(join(data, key)).mode & 0o777).toBe(0o600);
    }
    expect(printed.join("\n")).not.toContain("copy the keys");
  });

  test("contains no key in clear text", () => {
    for (const from of ["sealed", "for-recipient"]) {
      const names = readdirSync(at(from));
      expect(names).toContain("keys.sealed");
      expect(names.filter((name) => name.endsWith(".key"))).toEqual([]);
      expect(statSync(at(`${from}/keys.sealed`)).mode & 0o777).toBe(0o600);
      for (const name of names)
        for (const key of KEYS)
          expect(readFileSync(join(at(from), name)).includes(key[0]?.repeat(43) ?? "")).toBe(false);
    }
    expect(existsSync(at("plain/keys.sealed"))).toBe(false);
  });

  test("is opened by another program by the parameters of its head", () => {
    const opened = openedBy(at("sealed/keys.sealed"), PASSPHRASE);
    expect(opened.map(({ name, content }) => [name, Buffer.from(content, "base64url").toString()])).toEqual([
      ["master.key", `${"m".repeat(43)}\n`],
      ["root.key", `${"r".repeat(43)}\n`],
    ]);
  });

  test("is restored without keys if no secret is given", async () => {
    expect(await restored(at("sealed"), at("without-keys"), [])).toBe(0);
    expect(readdirSync(at("without-keys"))).toEqual(["tokens.sqlite"]);
    expect(printed.join("\n")).toContain("this folder has no keys: master.key, root.key are sealed in");
  });
});

/** Cuts the sealed file, and changes the manifest to match. */
function cut(backupFolder: string, bytes: number): void {
  const [file, manifest] = [join(backupFolder, "keys.sealed"), join(backupFolder, "manifest.json")];
  truncateSync(file, bytes);
  const document = JSON.parse(readFileSync(manifest, "utf8"));
  const sha256 = createHash("sha256").update(readFileSync(file)).digest("hex");
  writeFileSync(
    manifest,
    JSON.stringify({ ...document, sealedKeys: { name: "keys.sealed", bytes, sha256 } }),
  );
}

/** Changes the name of a key in the manifest. */
function otherKeys(backupFolder: string): void {
  const manifest = join(backupFolder, "manifest.json");
  writeFileSync(manifest, readFileSync(manifest, "utf8").replace("master.key", "mister.key"));
}

describe("a restore refuses", () => {
  test.each<[string, string, (from: string) => void, readonly string[], string]>([
    [
      "another passphrase",
      "sealed",
      () => {},
      byPassphrase("other-passphrase"),
      "the passphrase does not open it",
    ],
    [
      "another identity",
      "for-recipient",
      () => {},
      byIdentity("other-identity.pem"),
      "the identity does not open it",
    ],
    [
      "an identity for a passphrase",
      "sealed",
      () => {},
      byIdentity(),
      "the keys are sealed with a passphrase",
    ],
    [
      "a passphrase for an identity",
      "for-recipient",
      () => {},
      byPassphrase(),
      "the keys are sealed for a recipient",
    ],
    [
      "a truncated file",
      "sealed",
      (from) => truncateSync(join(from, "keys.sealed"), 300),
      byPassphrase(),
      "its digest differs",
    ],
    [
      "a truncated file that the manifest names",
      "sealed",
      (from) => cut(from, 300),
      byPassphrase(),
      "not a complete file",
    ],
    ["a missing file", "sealed", (from) => rmSync(join(from, "keys.sealed")), byPassphrase(), "is missing"],
    [
      "keys that the manifest does not name",
      "for-recipient",
      otherKeys,
      byIdentity(),
      "other keys than the manifest",
    ],
    ["a secret for a backup without keys", "plain", () => {}, byPassphrase(), "has no sealed keys"],
    ["a short passphrase", "sealed", () => {}, byPassphrase("short"), "it needs 12 to 1024"],
    ["two secrets", "sealed", () => {}, [...byPassphrase(), ...byIdentity()], "exclude one another"],
    [
      "two kinds of keys",
      "sealed",
      () => {},
      [...byPassphrase(), "--keys-from", at("data")],
      "exclude one another",
    ],
  ])("%s", async (name, made, change, words, reason) => {
    const from = at(`of ${name}`);
    cpSync(at(made), from, { recursive: true });
    change(from);
    const refused = await restored(from, `${from}-data`, words).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(CommandError);
    expect((refused as Error).message).toContain(reason);
    expect((refused as Error).message).not.toContain(PASSPHRASE);
    expect(existsSync(`${from}-data`)).toBe(false);
  });
});

test.each<[string, readonly string[], string]>([
  ["keys without a secret", ["--keys"], "--keys needs a secret"],
  ["a secret without keys", byPassphrase(), "add --keys, or omit the secret"],
  ["two secrets", ["--keys", ...byPassphrase(), ...forRecipient], "exclude one another"],
  ["a short passphrase", ["--keys", ...byPassphrase("short")], "it needs 12 to 1024"],
  ["no key as recipient", ["--keys", "--keys-recipient-file", at("short")], "X25519 public key"],
  ["a missing file", ["--keys", ...byPassphrase("nowhere")], "cannot be read"],
])("a backup is not made with %s", async (name, words, reason) => {
  const to = at(`never-${name}`);
  const refused = backup(["--data-dir", at("data"), "--to", to, ...words]);
  await expect(refused).rejects.toThrow(CommandError);
  await expect(refused).rejects.toThrow(reason);
  expect(existsSync(to)).toBe(false);
});
