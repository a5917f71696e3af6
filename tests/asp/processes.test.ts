import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { readTranscript, stateName } from "@depute/asp";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { afterEach, expect, test } from "vitest";
import { CleanUp, dataFolder } from "../faults/platform.ts";
import { type Agent, ALPHA, BETA, GAMMA } from "./cast.ts";
import { connect, OPERATOR, register } from "./platform.ts";
import { LINES } from "./scenario.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const CAST = [ALPHA, BETA, GAMMA];
const SCORES = [68, 85, 92];
const PARTY = fileURLToPath(new URL("./party.ts", import.meta.url));
const DEPUTE = fileURLToPath(new URL("../../cli/src/main.ts", import.meta.url));
const KEYS = CAST.map(({ uri, key }) => `${uri}=${key}`).join(",");

/** Runs a process to its end. */
async function run(args: readonly string[]) {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [out, error] = [text(child.stdout), text(child.stderr)];
  const [code] = (await once(child, "exit")) as [number | null];
  return { code, out: await out, error: await error };
}

const verify = (file: string, ...flags: string[]) => run([DEPUTE, "verify-transcript", file, ...flags]);

test.each(["http", "grpc"])(
  "three processes play the scenario over %s; a fourth verifies it offline",
  {
    timeout: 180_000,
  },
  async (by) => {
    const folder = await dataFolder(cleanUp);
    const platform = await startPlatformProcess(["start", "--gateway-port", "0"], {
      DEPUTE_DATA_DIR: folder,
      DEPUTE_LOG_LEVEL: "fatal",
      DEPUTE_TRUST_OPERATORS: OPERATOR.key,
    });
    cleanUp.add(() => platform.stop());
    const { close, ...registry } = connect(platform.about);
    cleanUp.add(async () => close());
    for (const [index, one] of CAST.entries()) await register(registry, one, SCORES[index]);
    const idOf = ({ uri }: Agent) => uri.slice(uri.lastIndexOf("/") + 1);
    const trustOf = async (one: Agent) =>
      (await registry.trust.getTrust({ agentId: idOf(one) })).overall ?? { score: 0, evidenceCount: 0n };
    const before = await Promise.all(CAST.map(trustOf));

    const files = CAST.map((_, index) => join(folder, `transcript-${index}.json`));
    const parties = CAST.map(({ uri }, index) => run([PARTY, uri, by, platform.about, files[index] ?? ""]));
    for (const { code, error } of await Promise.all(parties)) expect([error, code]).toEqual(["", 0]);

    const transcripts = await Promise.all(
      files.map(async (file) => {
        const read = readTranscript(await readFile(file));
        if (!read.ok) throw new Error(read.detail);
        return { ...read.transcript, exportedAt: "", seal: undefined };
      }),
    );
    expect(transcripts[1]).toEqual(transcripts[0]);
    expect(transcripts[2]).toEqual(transcripts[0]);
    expect(transcripts[0]?.messages).toHaveLength(LINES.length + 1);
    expect(transcripts[0]?.participants.map(({ trustScore }) => trustScore)).toEqual(SCORES);

    // Trust grows as in the specification's example: Alpha's most, Gamma's least.
    await expect
      .poll(async () => (await trustOf(GAMMA)).evidenceCount, { timeout: 15_000 })
      .toBeGreaterThan(before[2]?.evidenceCount ?? 0n);
    await expect
      .poll(async () => (await trustOf(ALPHA)).evidenceCount, { timeout: 15_000 })
      .toBe((before[0]?.evidenceCount ?? 0n) + 4n);
    await expect
      .poll(async () => (await trustOf(BETA)).evidenceCount, { timeout: 15_000 })
      .toBe((before[1]?.evidenceCount ?? 0n) + 4n);
    const after = await Promise.all(CAST.map(trustOf));
    const [alpha = 0, beta = 0, gamma = 0] = after.map(
      ({ score }, index) => score - (before[index]?.score ?? 0),
    );
    expect(alpha).toBeGreaterThan(beta);
    expect(beta).toBeGreaterThan(gamma);
    expect(gamma).toBeGreaterThan(0);

    const trust = join(folder, "platform.json");
    await writeFile(trust, await (await fetch(`${platform.about}/v1/asp/keys`)).text());

    // The transcripts are verified offline, so the platform stops here.
    await platform.stop();
    for (const file of files) {
      const { code, out, error } = await verify(file, "--trust", trust, "--keys", KEYS);
      expect([error, code]).toEqual(["", 0]);
      expect(out).toContain(`states: INVITED ${LINES.map(([, , , state]) => stateName(state)).join(" ")}`);
      expect(out).toContain(`${LINES.length + 1} messages, CLOSED, sealed`);
    }
    // The offline checks below do not depend on the wire, so they run only for HTTP.
    if (by !== "http") return;
    const [first = ""] = files;
    const whole = await readFile(first, "utf8");
    const tampered = join(folder, "tampered.json");
    await writeFile(
      tampered,
      whole.replace("SoftwareCorp Platform Enterprise", "SoftwareCorp Platform Basic"),
    );
    const late = join(folder, "late.json");
    await writeFile(late, JSON.stringify({ ...JSON.parse(whole), exportedAt: "2099-01-01T00:00:00.000Z" }));
    const { seal: _seal, ...unsealed } = JSON.parse(whole);
    const bare = join(folder, "unsealed.json");
    await writeFile(bare, JSON.stringify(unsealed));
    for (const [file, flags, status, message] of [
      [tampered, ["--trust", trust], 1, "not verified: wrong_hash at message 5"],
      [late, ["--trust", trust], 1, "not verified: wrong_seal"],
      [first, [], 2, "GET /v1/asp/keys"],
      [bare, ["--trust", trust], 3, "unsealed: "],
    ] as const) {
      const { code, error, out } = await verify(file, ...flags);
      expect([code, error + out]).toEqual([status, expect.stringContaining(message)]);
    }
  },
);
