import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createToken, generateKeypair, serialiseToken } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Grant, refusal, textOf } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";
import { connectProxy } from "./proxy-process.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-credentials-"));
const root = generateKeypair(engine);
const upstream = { maps: ["everything"], map: { tools: { echo: paid("everything/echo") } } };
let platform: McpPlatform;

function paid(resource: string) {
  return { namespace: "compute", action: "execute", resource, cost: 600 };
}

const credential = (name: string, secret: string) => {
  const path = join(folder, name);
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
};

beforeAll(async () => {
  const sha256 = (secret: string) => createHash("sha256").update(secret).digest("hex");
  const known = ["proxy", "stranger"].map((principal) => ({ principal, sha256: sha256(`${principal}'s`) }));
  const credentials = credential("credentials.json", JSON.stringify(known));
  platform = await startPlatform({}, [
    ...["--auth", "required", "--credentials-file", credentials],
    ...["--trusted-roots", root.principal.id, "--spenders", "proxy"],
  ]);
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Makes a token of a foreign root that the platform trusts, with its holder's key. */
function holderGrant(): Grant {
  const keypair = generateKeypair(engine);
  const contractId = "ct_a1b2c3d4e5f6";
  const token = createToken(
    engine,
    {
      ...{ delegatee: keypair.principal.id, contractId, maxBudgetMicrocents: 1000, maxChainDepth: 1 },
      capabilities: [{ namespace: "compute", action: "execute", resource: "everything/echo" }],
    },
    root,
  );
  const { delegationId } = token.authority;
  return { token: serialiseToken(token).token, revocationId: "", delegationId, contractId, keypair };
}

async function echo(flags: readonly string[]) {
  const { client, connected } = await connectProxy(
    { platform, folder },
    { server: EVERYTHING, upstream, holder: holderGrant(), flags },
  );
  await connected();
  const call = () => client.callTool({ name: "echo", arguments: { message: "hello" } });
  return { call, close: () => client.close() };
}

test("a proxy with a secret of the platform verifies and pays for its clients", async () => {
  const { call, close } = await echo(["--credential-file", credential("proxy", "proxy's")]);
  expect(textOf(await call())).toBe("Echo: hello");
  // A second call would exceed the token's budget.
  expect(await refusal(call())).toMatchObject({ code: -32001, data: { type: "budget_exceeded" } });
  await close();
}, 30_000);

test.each([
  ["that the platform does not know", () => credential("wrong", "guessed")],
  ["of a principal that may not spend for others", () => credential("stranger", "stranger's")],
])(
  "a secret %s makes no call",
  async (_, file) => {
    const { call, close } = await echo(["--credential-file", file()]);
    // The proxy reports its own fault on standard error, because the fault concerns only the operator. The
    // client gets a general reason.
    expect(await refusal(call())).toMatchObject({ code: -32603, data: { reason: "DEPENDENCY_UNAVAILABLE" } });
    await close();
  },
  30_000,
);

test("without a secret the token's own key identifies the caller", async () => {
  const { call, close } = await echo([]);
  expect(textOf(await call())).toBe("Echo: hello");
  await close();
}, 30_000);

test.each([
  ["is missing", join(folder, "nowhere")],
  ["is empty", credential("empty", "")],
])(
  "a proxy whose secret %s does not start",
  async (_, file) => {
    const { connected } = await connectProxy(
      { platform, folder },
      { server: EVERYTHING, upstream, holder: holderGrant(), flags: ["--credential-file", file] },
    );
    await expect(connected()).rejects.toThrow();
  },
  30_000,
);
