import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, test } from "vitest";
import { startPlatform } from "./platform.ts";

const run = promisify(execFile);

/** An Ed25519 public key, and the secret of its owner. */
const PRINCIPAL = `${"A".repeat(42)}M`;
const SECRET = "first-call";
const README_URL = "http://127.0.0.1:8080";

/** The curl calls in README's "A first call" that need no worker. Each is a shell command. */
const CALLS = firstCalls();

let folder: string;
let platform: Awaited<ReturnType<typeof startPlatform>>;

afterEach(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("README's first calls work on an open loopback", async () => {
  await start([]);
  const answers = await answersOf("");
  expect(answers[0]).toMatchObject({ agent: { id: "echo" } });
  expect(answers[0].agent.principal).toBeUndefined();
  expect(answers[1]).toMatchObject({ result: { caps: [] } });
});

test("README's first calls work where credentials are required, with one header more", async () => {
  await start(["--auth", "required"]);
  const answers = await answersOf(`-H 'authorization: Bearer ${SECRET}'`);
  expect(answers[0]).toMatchObject({ agent: { id: "echo", principal: PRINCIPAL } });
  expect(answers[1]).toMatchObject({ result: { caps: [] } });
  const [refused] = await answersOf("");
  expect(refused).toMatchObject({ code: "unauthenticated" });
});

async function start(flags: readonly string[]): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), "depute-first-"));
  const file = join(folder, "credentials.json");
  const sha256 = createHash("sha256").update(SECRET).digest("hex");
  writeFileSync(file, JSON.stringify([{ principal: PRINCIPAL, sha256 }]));
  platform = await startPlatform([...flags, "--credentials-file", file]);
}

/** @param header added to each call */
// biome-ignore lint/suspicious/noExplicitAny: documents of several forms, which the expectations tell
async function answersOf(header: string): Promise<any[]> {
  // The README's two calls: a registration and a discovery.
  expect(CALLS).toHaveLength(2);
  const answers: unknown[] = [];
  for (const call of CALLS) {
    const command = call.replace(README_URL, platform.url).replace(/^curl /, `curl -s ${header} `);
    answers.push(JSON.parse((await run("bash", ["-c", command])).stdout));
  }
  return answers;
}

function firstCalls(): string[] {
  const readme = readFileSync("README.md", "utf8");
  const section = readme.slice(readme.indexOf("## A first call"), readme.indexOf("A worker is a function"));
  const blocks = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => block.match(/^curl (?:[^\n]|\\\n|\n {2})*/gm) ?? []);
}
