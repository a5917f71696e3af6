import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { shell } from "./deployment.ts";

const LONG = 300_000;
const folder = mkdtempSync(join(tmpdir(), "depute-sealed-backup-"));
const at = (name: string) => join(folder, name);
let running: TestPlatform | undefined;
afterEach(async () => {
  await running?.stop();
  running = undefined;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function call(platform: TestPlatform, method: string, body: object) {
  const answer = await platform.post(`/depute.${method}`, body);
  const document = await answer.json();
  if (!answer.ok) throw new Error(`${method}: ${JSON.stringify(document)}`);
  return document as Record<string, unknown> & { revocationId: string; token: object };
}

const mint = (platform: TestPlatform) =>
  call(platform, "tokens.v1.TokenService/MintToken", {
    ...{ requestId: crypto.randomUUID(), delegatee: generateKeypair(engine).principal.id },
    ...{
      capabilities: [{ namespace: "llm", action: "classify", resource: "*" }],
      maxBudgetMicrocents: "1000",
    },
    contractId: "ct_000000000000",
  });

/** What a platform says about two tokens and its logs, without the times of signatures. */
async function testimony(platform: TestPlatform, tokens: readonly object[]) {
  const inspected = tokens.map((token) => call(platform, "tokens.v1.TokenService/InspectToken", { token }));
  const { head } = await call(platform, "verifier.v1.LogService/GetLogHead", {});
  const { checkpoint } = await call(platform, "tokens.v1.RevocationService/GetRevocationCheckpoint", {});
  const { log, treeSize, rootHash } = head as Record<string, unknown>;
  const { sequence, signer, head: lastHead } = checkpoint as Record<string, unknown>;
  return { inspected: await Promise.all(inspected), log, treeSize, rootHash, sequence, signer, lastHead };
}

test(
  "a backup with sealed keys restores a platform whose tokens and logs verify",
  async () => {
    writeFileSync(at("passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    const openssl = (...words: string[]) => execFileSync("openssl", words, { stdio: "pipe" });
    openssl("genpkey", "-algorithm", "X25519", "-out", at("identity.pem"));
    openssl("pkey", "-in", at("identity.pem"), "-pubout", "-out", at("recipient.pem"));
    running = await startPlatform([], { dataDir: at("data") });
    const platform = running;
    const [live, revoked] = [await mint(platform), await mint(platform)];
    const scope = "REVOCATION_SCOPE_CHAIN";
    const { revocationId } = revoked;
    await call(platform, "tokens.v1.RevocationService/RevokeMintedToken", { revocationId, scope });
    const tokens = [live.token, revoked.token];
    await vi.waitFor(async () => expect((await testimony(platform, tokens)).treeSize).toBe("1"), 30_000);
    const expected = await testimony(platform, tokens);

    const secrets = [
      [
        ["--keys-passphrase-file", at("passphrase")],
        ["--keys-passphrase-file", at("passphrase")],
      ],
      [
        ["--keys-recipient-file", at("recipient.pem")],
        ["--keys-identity-file", at("identity.pem")],
      ],
    ];
    for (const [index, [sealer = []]] of secrets.entries()) {
      const words = ["backup", "--data-dir", at("data"), "--to", at(`backup-${index}`), "--keys", ...sealer];
      const made = await shell(words);
      expect(made, made.err).toMatchObject({ code: 0, err: "" });
    }
    await platform.stop();
    rmSync(at("data"), { recursive: true });
    for (const [index, [, opener = []]] of secrets.entries()) {
      const words = [
        "restore",
        "--from",
        at(`backup-${index}`),
        "--data-dir",
        at(`data-${index}`),
        ...opener,
      ];
      const restored = await shell(words);
      expect(restored, restored.err).toMatchObject({ code: 0, err: "" });
      expect(readdirSync(at(`data-${index}`))).toContain("root.key");
      running = await startPlatform([], { dataDir: at(`data-${index}`) });
      expect(await testimony(running, tokens)).toEqual(expected);
      const again = await mint(running);
      expect(JSON.stringify(await testimony(running, [again.token]))).toContain(String(expected.signer));
      await running.stop();
      running = undefined;
    }
  },
  LONG,
);
