import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALICE, curl, flagsOf, type Json, newRequest, ORGANIZATION } from "./scene.ts";

/**
 * This file runs the registry and the verifier as two processes on one folder, and kills them between the steps of
 * a proposal.
 */

const MAIN = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));
const PROPOSALS = "registry.v1.ProposalService";
const REVIEWS = "verifier.v1.ReviewService";

type Name = "registry" | "verifier";

let folder: string;
let flags: string[];
const ports: Record<Name, number> = { registry: 0, verifier: 0 };
const processes = new Map<Name, ChildProcess>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-proposal-crash-"));
  flags = flagsOf(join(folder, "credentials.json"));
  ports.registry = await freePort();
  ports.verifier = await freePort();
  await Promise.all([start("registry"), start("verifier")]);
}, 60_000);
afterAll(() => {
  for (const child of processes.values()) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  await once(server.close(), "close");
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

async function start(name: Name): Promise<void> {
  // Settings of the registry are unknown to the verifier, so that each process gets the flags that it has.
  const own = name === "registry" ? flags : flags.slice(0, 4);
  const child = spawn(process.execPath, [MAIN, "serve", name, ...own], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      ...{ DEPUTE_DATA_DIR: folder, DEPUTE_LOG_LEVEL: "error", DEPUTE_INTERNAL_SECRET: "s".repeat(43) },
      ...{ DEPUTE_REGISTRY_PORT: String(ports.registry), DEPUTE_VERIFIER_PORT: String(ports.verifier) },
      DEPUTE_REGISTRY_URL: `http://127.0.0.1:${ports.registry}`,
      DEPUTE_VERIFIER_URL: `http://127.0.0.1:${ports.verifier}`,
    },
  });
  processes.set(name, child);
  for await (const line of createInterface(child.stdout)) if (line.includes("listens on")) return;
  throw new Error(`${name} ended`);
}

async function kill(name: Name): Promise<void> {
  const child = processes.get(name);
  if (child === undefined) throw new Error(`${name} does not run`);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

const registry = (caller: string, method: string, request: Json) =>
  curl(`http://127.0.0.1:${ports.registry}`, caller, `registry.v1.${method}`, request);
const verifier = (caller: string, method: string, request: Json) =>
  curl(`http://127.0.0.1:${ports.verifier}`, caller, `${REVIEWS}/${method}`, request);

async function propose(organization: string): Promise<string> {
  const request = { requestId: newRequest(), justification: "needed", ...ORGANIZATION(organization) };
  const url = `http://127.0.0.1:${ports.registry}`;
  const { proposal } = (await curl(url, ALICE, `${PROPOSALS}/CreateProposal`, request)) as { proposal: Json };
  return String(proposal.id);
}
const stateOf = async (proposalId: string) =>
  ((await registry(ALICE, "ProposalService/GetProposal", { proposalId })).proposal as Json).state;
const proofsOf = async (organization: string) =>
  ((
    await registry(ALICE, "OrganizationService/ListOrganizationProofs", {
      organization,
      includeRevoked: true,
    })
  ).proofs ?? []) as Json[];
const reviewed = (reviewId: string) =>
  expect
    .poll(async () => (await verifier("operator", "GetReview", { reviewId })).review, { timeout: 20_000 })
    .toMatchObject({ state: "REVIEW_STATE_PENDING" });
const approve = async (reviewId: string) =>
  expect(
    await verifier("operator", "DecideReview", { reviewId, verdict: "REVIEW_VERDICT_APPROVED" }),
  ).toMatchObject({ review: { state: "REVIEW_STATE_APPROVED" } });
const granted = (id: string) =>
  expect.poll(() => stateOf(id), { timeout: 20_000 }).toBe("PROPOSAL_STATE_GRANTED");

test("an approval that a killed registry has not read makes the grant after the restart", async () => {
  const id = await propose("acme");
  await reviewed(id);
  processes.get("registry")?.kill("SIGSTOP");
  await approve(id);
  await kill("registry");
  await start("registry");
  await granted(id);
  expect(await proofsOf("acme")).toMatchObject([{ principal: ALICE, provenBy: "operator" }]);
}, 60_000);

test("a grant that was made and revoked is not made again by a restart", async () => {
  const [proof] = await proofsOf("acme");
  const revoke = { requestId: newRequest(), proofId: proof?.id };
  await registry("operator", "OrganizationService/RevokeOrganizationProof", revoke);
  await kill("registry");
  await start("registry");
  // The approval of another proposal shows that the registry reads the queue again.
  const id = await propose("globex");
  await reviewed(id);
  await approve(id);
  await granted(id);
  expect(await proofsOf("acme")).toMatchObject([{ revokedBy: "operator" }]);
}, 60_000);

test.each([0, 2, 5, 10, 20, 40])(
  "a kill %i ms after the approval makes one grant",
  async (ms) => {
    const organization = `killed after ${ms}`;
    const id = await propose(organization);
    await reviewed(id);
    await approve(id);
    await delay(ms);
    await kill("registry");
    await start("registry");
    await granted(id);
    expect(await proofsOf(organization)).toHaveLength(1);
  },
  60_000,
);

test("a proposal that the verifier had not received when both were killed enters the queue", async () => {
  await kill("verifier");
  const id = await propose("initech");
  await kill("registry");
  await Promise.all([start("registry"), start("verifier")]);
  await reviewed(id);
  await approve(id);
  await granted(id);
}, 60_000);
