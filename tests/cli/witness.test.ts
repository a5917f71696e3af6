import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "depute/ports";
import { afterAll, afterEach, expect, test } from "vitest";
import { backendOf, Deployment, shell } from "./deployment.ts";

const LONG = 300_000;
const folder = mkdtempSync(join(tmpdir(), "depute-witnessed-"));
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A web server of Python that keeps what clients put. */
const STORE = `
import sys, http.server
kept = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        if self.headers.get("authorization") != "Bearer witness-secret":
            return self.send_error(401)
        kept[self.path] = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204); self.end_headers()
    def do_GET(self):
        if self.path not in kept:
            return self.send_error(404)
        self.send_response(200); self.end_headers(); self.wfile.write(kept[self.path])
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
`;

async function startStore(): Promise<string> {
  const [port = 0] = await freePorts(1);
  const child = spawn("python3", ["-c", STORE, String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  cleanUps.push(async () => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return `http://127.0.0.1:${port}/heads`;
}

async function start(dataDir: string, witness: Record<string, string>): Promise<Deployment> {
  const platform = await Deployment.start(dataDir, backendOf(witness));
  cleanUps.push(() => platform.stop());
  return platform;
}

/** Mints a token and revokes it. Waits until the transparency log has the revocation. */
async function revokeOne(platform: Deployment, size: number): Promise<void> {
  const principal = (await platform.run(["keys", "new", `me-${size}.key`])).out.trim();
  const words = ["--delegatee", principal, "--capability", "web:search:**", "--budget", "1000"];
  const created = await platform.run(["tokens", "create", ...words]);
  expect(created, created.err).toMatchObject({ code: 0 });
  writeFileSync(join(platform.folder, "token.txt"), created.out);
  const revoked = await platform.run(["tokens", "revoke", "@token.txt"]);
  expect(revoked, revoked.err).toMatchObject({ code: 0 });
  for (let attempt = 0; ; attempt++) {
    const { out } = await platform.run(["log", "head", "-o", "json"]);
    const head = JSON.parse(out).head ?? JSON.parse(out);
    if (Number(head.treeSize ?? 0) >= size) return;
    if (attempt > 50) throw new Error("the revocation is not in the log");
  }
}

test.each([
  [
    "a folder elsewhere",
    async () => {
      const heads = join(folder, `heads-${Date.now()}`);
      mkdirSync(heads);
      return { DEPUTE_WITNESS: heads };
    },
  ],
  [
    "a web server of another language",
    async () => ({ DEPUTE_WITNESS: await startStore(), DEPUTE_WITNESS_TOKEN: "witness-secret" }),
  ],
])(
  "an older copy of the whole data folder does not start where the witness is %s",
  async (name, open) => {
    const witness = await open();
    const [data, copy, kept] = ["data", "copy", "kept"].map((each) =>
      join(folder, `${name}-${each}`.replaceAll(" ", "-")),
    );
    if (data === undefined || copy === undefined || kept === undefined) throw new Error("no folders");
    const first = await start(data, witness);
    await revokeOne(first, 1);
    await first.stop();
    cpSync(data, copy, { recursive: true });
    const second = await start(data, witness);
    await revokeOne(second, 2);
    await second.stop();
    cpSync(data, kept, { recursive: true });

    const env = { ...backendOf(witness), DEPUTE_GATEWAY_PORT: "0" };
    const refused = await shell(["start", "--data-dir", copy], env);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(
      /^depute: the data is an old copy: the revocation log does not continue from the head at /,
    );
    expect(refused.err.trim().split("\n")).toHaveLength(1);
    // Another platform cannot use the first one's place at the witness, either.
    const other = await shell(["start", "--data-dir", join(folder, `${name}-other`)], env);
    expect(other).toMatchObject({
      code: 1,
      err: expect.stringContaining("is not a head of this platform's"),
    });

    const newest = await start(kept, witness);
    await revokeOne(newest, 3);
  },
  LONG,
);

test(
  "both logs have a head at the witness, and each head is checked separately",
  async () => {
    const heads = join(folder, "both");
    mkdirSync(heads, { recursive: true });
    const data = join(folder, "both-data");
    const platform = await start(data, { DEPUTE_WITNESS: heads });
    await revokeOne(platform, 1);
    await platform.stop();
    expect(readdirSync(heads).sort()).toEqual(["revocations.head", "transparency.head"]);
    const read = (name: string) => JSON.parse(readFileSync(join(heads, name), "utf8"));
    expect(read("revocations.head").sequence).toBe(1);
    expect(read("transparency.head").treeSize).toBe(1);
    rmSync(join(heads, "revocations.head"));
    for (const name of readdirSync(data)) if (name.startsWith("verifier.sqlite")) rmSync(join(data, name));
    const env = { ...backendOf({ DEPUTE_WITNESS: heads }), DEPUTE_GATEWAY_PORT: "0" };
    expect(await shell(["start", "--data-dir", data], env)).toMatchObject({
      code: 1,
      err: expect.stringContaining("the data is an old copy: the transparency log does not continue"),
    });
  },
  LONG,
);
