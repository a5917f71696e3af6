import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { fromConnectError } from "@depute/service";
import { startTestIssuer, type TestIssuer } from "@depute/service/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startApart, startPlatform } from "../gateway/platform.ts";

/** Milliseconds within which a stream ends after its caller lost its right. */
const PROMISED_MS = 5000;

let folder: string;
let issuer: TestIssuer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-stream-ends-"));
  issuer = await startTestIssuer(Date.now);
});
afterAll(async () => {
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

const AUDITOR = { subject: "ada", principal: "ada@acme", organization: "acme", roles: ["auditor"] };
const REMOVED = { subject: "bob", principal: "bob@acme", roles: ["auditor"] };
const EXPIRING = { subject: "eve", principal: "eve@acme", roles: ["auditor"] };
const STAYING = { subject: "joe", principal: "joe@acme", roles: ["auditor"] };

describe.each([
  ["one process", startPlatform],
  ["a gateway apart from the services", startApart],
])("open streams, at %s", (name, start) => {
  let platform: Awaited<ReturnType<typeof startApart | typeof startPlatform>>;
  let file: string;
  const save = (identities: object[]) =>
    writeFileSync(
      file,
      JSON.stringify({
        issuers: [{ issuer: issuer.url, audiences: ["depute"], clockSkewSeconds: 0, identities }],
      }),
    );

  beforeAll(async () => {
    file = join(folder, `${name}.json`);
    save([AUDITOR, REMOVED, EXPIRING, STAYING]);
    platform = await start(["--auth", "required", "--identities-file", file]);
  }, 60_000);
  afterAll(() => platform.stop());

  /**
   * Opens a stream of audit records by a token with these claims. `end` resolves with the error and the time of its
   * end.
   */
  async function open(claims: Record<string, unknown>) {
    const headers = { authorization: `Bearer ${await issuer.sign(claims)}` };
    const abort = new AbortController();
    const stream = platform.clients.audit.watchAuditRecords(
      { sendStart: true },
      { headers, signal: abort.signal },
    );
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const end = (async () => {
      try {
        for (;;)
          if ((await iterator.next()).done === true) return { error: undefined, at: performance.now() };
      } catch (error) {
        return { error: ConnectError.from(error), at: performance.now() };
      }
    })();
    return { end, abort: () => abort.abort() };
  }

  test("end within 5 seconds after a revoked role, a removed identity and an expired login", async () => {
    const exp = Math.floor(Date.now() / 1000) + 2;
    const [revoked, removed, expired, staying] = [
      await open({ sub: "ada" }),
      await open({ sub: "bob" }),
      await open({ sub: "eve", exp }),
      await open({ sub: "joe" }),
    ];
    const from = performance.now();
    save([{ ...AUDITOR, roles: ["user"] }, EXPIRING, STAYING]);
    const ends = await Promise.all([revoked.end, removed.end, expired.end]);
    const codes = ends.map(({ error }) => error?.code);
    expect(codes).toEqual([Code.PermissionDenied, Code.Unauthenticated, Code.Unauthenticated]);
    const metadata = ends.map(({ error }) => error && fromConnectError(error).metadata);
    expect(metadata).toMatchObject([
      { roles: "auditor,operator" },
      { fault: "not_mapped" },
      { fault: "expired" },
    ]);
    const lateness = [from, from, from + 2000].map((since, at) => (ends[at]?.at ?? 0) - since);
    expect(Math.max(...lateness)).toBeLessThan(PROMISED_MS + 1000);
    const other = await Promise.race([
      staying.end,
      new Promise((resolve) => setTimeout(resolve, 100, "open")),
    ]);
    expect(other).toBe("open");
    staying.abort();
  }, 20_000);
});
