import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@depute/client";
import { AttestationType } from "@depute/contracts/delegateos/v0/attestation_pb";
import { VerificationMethod } from "@depute/contracts/delegateos/v0/verification_pb";
import { encodeBase64Url } from "@depute/core";
import { generateKeypair, type Keypair, verifyAuthorityBundle } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, it, test } from "vitest";
import { userOf } from "../cli/depute.ts";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

const [holder, worker] = [generateKeypair(engine), generateKeypair(engine)];
let platform: TestPlatform;
const folder = mkdtempSync(join(tmpdir(), "depute-explain-"));
beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "idle", [["count"]], worker.principal.id);
}, 180_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

function requirePresent<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

/** Makes a contract that the platform signed, and a token of two blocks for it. */
async function delegated() {
  const { contracts, tokens } = platform.clients;
  const { contract } = await contracts.signContract({
    requestId: crypto.randomUUID(),
    contract: {
      task: { title: "Count", description: "Count words.", inputs: {}, outputSchema: value({}) },
      verification: { method: VerificationMethod.SCHEMA_MATCH },
      constraints: {
        ...{ maxBudgetMicrocents: 1000n, maxChainDepth: 3n, requiredCapabilities: [] },
        deadline: new Date(Date.now() + 3_600_000).toISOString(),
      },
    },
  });
  const contractId = requirePresent(contract).id;
  const minted = await tokens.mintToken({
    ...{ requestId: crypto.randomUUID(), delegatee: holder.principal.id, contractId },
    capabilities: [{ namespace: "depute:tasks", action: "delegate", resource: "idle/**" }],
    ...{ maxBudgetMicrocents: 1000n, maxChainDepth: 2 },
  });
  const { attenuation, digest } = await tokens.prepareAttenuation({
    token: requirePresent(minted.token),
    attenuation: { delegatee: worker.principal.id, maxBudgetMicrocents: 10n },
  });
  const signature = engine.sign(digest, holder.privateKey);
  const narrowed = await tokens.attenuateToken({
    ...{ token: requirePresent(minted.token), attenuation: requirePresent(attenuation), signature },
  });
  return { contractId, minted, narrowed };
}

/** Records an attestation of the worker. */
async function attested(contractId: string, delegationId: string, signer: Keypair) {
  const { attestations } = platform.clients;
  const { attestation, digest } = await attestations.prepareAttestation({
    attestation: {
      ...{ contractId, delegationId, principal: signer.principal.id, type: AttestationType.COMPLETION },
      result: { success: true, output: value({ words: 3 }), costMicrocents: 1n, durationMs: 5n },
    },
  });
  const signature = encodeBase64Url(engine.sign(digest, signer.privateKey));
  await attestations.recordAttestation({ attestation: { ...requirePresent(attestation), signature } });
  return requirePresent(attestation).id;
}

const root = async () => (await platform.clients.tokens.getIssuer({})).principal;
const logPrincipal = async () => requirePresent((await platform.clients.log.getLogHead({})).head).log;

/** Returns the answer of a Python program that follows only docs/explanations.md. */
function byPython(bundle: string, ...keys: string[]) {
  const file = join(folder, `${crypto.randomUUID()}.json`);
  writeFileSync(file, bundle);
  const { status, stdout, stderr } = spawnSync(
    "python3",
    ["-B", "vectors/check/authority_bundle.py", file, ...keys],
    { encoding: "utf8" },
  );
  return { status, out: stdout.trim() || stderr };
}
const hasPython = spawnSync("python3", ["-c", "import cryptography"]).status === 0;
if (!hasPython && process.env.CI === "true") throw new Error("python3 with `cryptography` is needed");

it("explains a task by the token that its delegate works under", async () => {
  const { contractId, narrowed } = await delegated();
  const workerToken = requirePresent(narrowed.token).token;
  const { task } = await platform.clients.tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: { agentId: "idle", capabilityId: "count", input: value({}), contractId, workerToken },
  });
  const depute = connect(platform.url, { key: worker });
  const { id, delegationId } = requirePresent(task);
  expect(delegationId).toBe(narrowed.delegationId);
  const { explanation } = await depute.services.delegations.explainAuthority({
    subject: { case: "taskId", value: id },
  });
  expect(explanation).toMatchObject({
    ...{ kind: "task", subjectId: id, principal: worker.principal.id, validThen: true, validNow: true },
    blocks: [{ delegatee: holder.principal.id }, { delegator: holder.principal.id, narrowed: ["budget"] }],
  });
  depute.close();

  const stranger = connect(platform.url, { key: generateKeypair(engine) });
  const asked = [id, "01900000-0000-7000-8000-000000000000"].map((taskId) =>
    stranger.services.delegations.explainAuthority({ subject: { case: "taskId", value: taskId } }).then(
      () => "an answer",
      (error: Error) => error.message,
    ),
  );
  const [real, invented] = await Promise.all(asked);
  expect(real).toBe(invented);
  expect(real).toContain("the task does not exist");
  stranger.close();

  const user = userOf(platform.url);
  const bundle = join(folder, "bundle.json");
  const explained = await user.run(["explain", id, "--bundle", bundle]);
  expect(explained.out).toContain("attenuates budget");
  const verified = await user.run(["verify-authority", bundle, `--root=${await root()}`]);
  expect(verified, verified.out).toMatchObject({ code: 0 });
  expect(verified.out).toContain(`authority of ${worker.principal.id}`);
  expect(await user.run(["verify-authority", bundle, `--root=${holder.principal.id}`])).toMatchObject({
    code: 1,
  });
  user.remove();
});

it("explains a task without a token by its delegator alone", async () => {
  const { tasks, delegations } = platform.clients;
  const { task } = await tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: { agentId: "idle", capabilityId: "count", input: value({}) },
  });
  const { explanation } = await delegations.explainAuthority({
    subject: { case: "taskId", value: requirePresent(task).id },
  });
  expect(explanation).toMatchObject({ kind: "task", principal: "local", blocks: [], validThen: true });
});

test.runIf(hasPython)(
  "an attestation's bundle proves its authority and its place in the log, in Python too",
  async () => {
    const { contractId, narrowed, minted } = await delegated();
    const attestationId = await attested(contractId, narrowed.delegationId, worker);
    const { bundle, explanation } = await platform.clients.delegations.explainAuthority({
      subject: { case: "attestationId", value: attestationId },
    });
    expect(explanation).toMatchObject({
      kind: "attestation",
      principal: worker.principal.id,
      validThen: true,
    });
    const keys = [await root(), await logPrincipal()] as const;
    const trusted = { roots: new Set([keys[0]]), logs: new Set([keys[1]]) };
    const { ok, checks } = verifyAuthorityBundle(engine, bundle, trusted);
    expect({ ok, names: checks.map(({ name }) => name) }).toEqual({
      ok: true,
      names: ["signature", "proofs", "blocks", "revocations", "attestation", "log"],
    });
    expect(byPython(bundle, ...keys)).toEqual({ status: 0, out: "valid" });
    expect(byPython(bundle.replace('"words":3', '"words":4'), ...keys)).toMatchObject({ status: 1 });
    expect(byPython(bundle, keys[0], keys[0])).toMatchObject({ status: 1 });

    await platform.clients.revocations.revokeMintedToken({ revocationId: minted.revocationId, scope: 2 });
    const revoked = await platform.clients.delegations.explainAuthority({
      subject: { case: "token", value: requirePresent(narrowed.token) },
    });
    expect(revoked.explanation).toMatchObject({ validNow: false });
    expect(byPython(revoked.bundle, ...keys)).toEqual({ status: 0, out: "valid" });
    expect(
      byPython(revoked.bundle.replace('"validityNow":"revoked"', '"validityNow":"valid"'), ...keys),
    ).toMatchObject({
      status: 1,
    });
  },
);
