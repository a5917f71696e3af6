import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Deployment } from "./deployment.ts";

/** What a platform says about the tokens and logs of the test. */
export async function testimony(platform: Deployment, live: string, revoked: string) {
  const inspect = async (file: string) => (await platform.run(["tokens", "inspect", `@${file}`])).out;
  const { out: head } = await platform.run(["log", "head", "-o", "json"]);
  const { rootHash, treeSize } = JSON.parse(head).head ?? JSON.parse(head);
  const { out: entries } = await platform.run(["log", "list", "-o", "json"]);
  return {
    live: await inspect(live),
    revoked: await inspect(revoked),
    revocations: (await platform.run(["tokens", "revocations", "-o", "id"])).out,
    log: { rootHash, treeSize, entries },
    audit: (await platform.run(["audit", "verify"])).code,
  };
}

/** Makes tokens, revokes one, and waits until the transparency log has the revocation. */
export async function fill(platform: Deployment): Promise<{ live: string; revoked: string }> {
  const principal = (await platform.run(["keys", "new", "me.key"])).out.trim();
  const create = async (name: string) => {
    const words = ["--delegatee", principal, "--capability", "web:search:**", "--budget", "1000"];
    const { out, code, err } = await platform.run(["tokens", "create", ...words, "--lifetime", "12h"]);
    expect(code, err).toBe(0);
    writeFileSync(join(platform.folder, name), out);
    return name;
  };
  const [live, revoked] = [await create("live.txt"), await create("revoked.txt")];
  expect((await platform.run(["tokens", "revoke", `@${revoked}`])).code).toBe(0);
  for (let attempt = 0; (await platform.run(["log", "list", "-o", "json"])).out.length < 100; attempt++) {
    if (attempt > 50) throw new Error("the revocation is not in the log");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return { live, revoked };
}
