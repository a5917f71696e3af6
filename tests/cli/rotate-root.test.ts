import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, expect, test } from "vitest";
import { ForeignHolder } from "../tokens/foreign-holder.ts";
import { isOfRoot, isSuccession, issuerOf } from "../tokens/foreign-root-reader.ts";
import { backendOf, Deployment } from "./deployment.ts";

/**
 * In this file the operator rotates the root at the command line, while an outside client calls the platform, which
 * uses SQLite. The client makes proofs and checks signatures without code of the platform.
 */

const LONG = 300_000;
const OVERLAP_MS = 20_000;
const TOKENS = "depute.tokens.v1.TokenService";
const TARGET = "https://api.example/documents";
const READ = { namespace: "docs", action: "read", resource: "/**" };

type Json = Record<string, unknown>;
interface RootKeyJson {
  readonly principal: string;
  readonly state: string;
  readonly retireTime?: string;
  readonly succession?: Json;
}

const folder = mkdtempSync(join(tmpdir(), "depute-rotate-root-"));
let platform: Deployment | undefined;
afterEach(() => platform?.stop());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const holder = new ForeignHolder();

async function post(url: string, method: string, request: Json): Promise<Json> {
  const answer = await fetch(`${url}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  const body = (await answer.json()) as Json;
  if (answer.status !== 200) throw new Error(`${method}: ${answer.status} ${JSON.stringify(body)}`);
  return body;
}

async function mint(url: string): Promise<string> {
  const { token } = await post(url, `${TOKENS}/MintToken`, {
    ...{ requestId: crypto.randomUUID(), delegatee: holder.principal, capabilities: [READ] },
    ...{ contractId: "ct_0123456789ab", maxBudgetMicrocents: 1000, lifetime: "3600s" },
  });
  return (token as { token: string }).token;
}

/** Presents a token with a proof. Returns `allowed`, or the denial with its detail. */
async function present(url: string, token: string): Promise<string> {
  const { denial } = await post(url, `${TOKENS}/VerifyToken`, {
    token: { token, format: "delegateos-sjt-v1" },
    proof: { jwt: holder.prove("POST", TARGET, token), method: "POST", target: TARGET },
    requested: { ...READ, resource: "/a" },
  });
  if (denial === undefined) return "allowed";
  const { type, detail } = denial as { type: string; detail?: string };
  return `${type} ${detail ?? ""}`;
}

/** Mints and presents tokens until `stop`. Collects what was not allowed. */
async function load(url: string, old: string, stop: AbortSignal) {
  const faults: string[] = [];
  let calls = 0;
  while (!stop.aborted) {
    for (const token of [old, await mint(url)]) {
      const outcome = await present(url, token);
      calls++;
      if (outcome !== "allowed") faults.push(outcome);
    }
  }
  return { faults, calls };
}

async function run(words: readonly string[]): Promise<string> {
  const { code, out, err } = (await platform?.run(words)) ?? { code: -1, out: "", err: "" };
  expect(code, err).toBe(0);
  return out;
}

const roots = async (): Promise<RootKeyJson[]> => JSON.parse(await run(["keys", "roots", "-o", "json"])).keys;

test(
  "no call fails during a rotation, and the old root's tokens are denied after the overlap",
  async () => {
    platform = await Deployment.start(join(folder, "data"), backendOf());
    const { url } = platform;
    const old = await mint(url);
    const [first] = await roots();
    expect(isOfRoot(old, [first?.principal ?? ""])).toBe(true);

    const stop = new AbortController();
    const loads = Array.from({ length: 4 }, () => load(url, old, stop.signal));
    const words = ["keys", "rotate-root", "--overlap", `${OVERLAP_MS}ms`, "--request-id", "r1", "-o", "json"];
    const rotated = JSON.parse(await run(words)) as RootKeyJson;
    expect(JSON.parse(await run(words))).toEqual(rotated);
    const [replaced, present1] = await roots();
    const retireTime = Date.parse(replaced?.retireTime ?? "");
    expect(replaced).toMatchObject({ principal: first?.principal, state: "ROOT_KEY_STATE_VERIFYING" });
    expect(present1).toEqual(rotated);
    const fresh = await mint(url);
    expect(issuerOf(fresh)).toBe(rotated.principal);
    await delay(retireTime - Date.now() - 1000);
    stop.abort();
    const outcomes = await Promise.all(loads);
    expect(outcomes.flatMap(({ faults }) => faults)).toEqual([]);
    expect(outcomes.reduce((sum, { calls }) => sum + calls, 0)).toBeGreaterThan(50);
    expect(Date.now()).toBeLessThan(retireTime);

    await delay(retireTime - Date.now() + 10);
    const iso = new Date(retireTime).toISOString();
    expect(await present(url, old)).toContain(
      `ROOT_RETIRED authority.issuer: the root key retired at ${iso}`,
    );
    expect(await present(url, fresh)).toBe("allowed");

    // An outside client that pinned the first root follows the statement to the new one.
    const published = await roots();
    const succession = published[1]?.succession ?? {};
    expect(succession).toMatchObject({ earlier: first?.principal, successor: rotated.principal });
    expect(isSuccession(succession)).toBe(true);
    expect(isSuccession({ ...succession, earlier: rotated.principal })).toBe(false);
    expect(isOfRoot(fresh, [String(succession.successor)])).toBe(true);
    expect(isOfRoot(old, [first?.principal ?? ""])).toBe(true);
    expect(await run(["keys", "roots"])).toMatch(/^PRINCIPAL .*\n\S+ +retired .*\n\S+ +signing /);
  },
  LONG,
);

test(
  "after a compromise all earlier roots end at once, also across a restart",
  async () => {
    platform = await Deployment.start(join(folder, "data"), backendOf());
    const before = await mint(platform.url);
    await run(["keys", "rotate-root"]);
    const between = await mint(platform.url);
    const earlier = issuerOf(before);
    await run(["keys", "retire-root", earlier]);
    expect(await present(platform.url, before)).toContain("ROOT_RETIRED");
    expect(await present(platform.url, between)).toBe("allowed");
    await run(["keys", "rotate-root", "--retire-now"]);
    const last = await mint(platform.url);
    await platform.stop();

    platform = await Deployment.start(join(folder, "data"), backendOf());
    expect(await present(platform.url, between)).toContain("ROOT_RETIRED");
    expect(await present(platform.url, last)).toBe("allowed");
    const signing = (await roots()).filter(({ state }) => state === "ROOT_KEY_STATE_SIGNING");
    expect(signing.map(({ principal }) => principal)).toEqual([issuerOf(last)]);
  },
  LONG,
);
