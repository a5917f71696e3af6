import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CHECKS, type Facts, type Status } from "./checks.ts";

/** A deployment that satisfies every check. */
const GOOD: Facts = {
  settings: {
    ...{ auth: "required", credentialsFile: "", identitiesFile: "/etc/depute/identities.json" },
    ...{ publicUrl: "https://depute.example", holderProof: "required", dataDir: "/data" },
    ...{ tlsCertFile: "/tls/cert.pem", tlsKeyFile: "/tls/key.pem", tlsClientCaFile: "/tls/ca.pem" },
    ...{ tlsMinVersion: "1.3", internalSecret: "x".repeat(43), masterKeyFile: "/etc/depute/master.key" },
    ...{ metricsPort: 9090, metricsToken: "", minters: ["a"], auditors: ["a"], trustOperators: ["a"] },
    ...{ boundsOperators: ["a"], aspAuthorityOperators: ["a"], tasksOutboundHosts: ["agents.example"] },
    ...{ allowedOrigins: ["https://app.example"], trustedProxies: [], socketDir: "" },
    ...{
      postgresUrl: "postgres://depute@db.example/depute?sslmode=verify-full",
      redisUrl: "rediss://redis.example",
    },
  },
  variableOf: (name) => `DEPUTE_${name}`,
  secretVariables: [],
  nowMs: 0,
  file: () => ({ exists: true, isReadableByOthers: false }),
  certificate: () => ({ expireMs: 100 * 86_400_000 }),
  isWithin: () => false,
};

const run = (id: string, facts: Facts) => CHECKS.find((check) => check.id === id)?.run(facts);
const days = (number: number): Partial<Facts> => ({ certificate: () => ({ expireMs: number * 86_400_000 }) });

test.each(CHECKS.filter(({ id }) => id !== "data-folder"))("a good deployment passes $id", ({ id }) => {
  expect(run(id, GOOD)?.status).toBe("ok");
});

test.each<[string, Status, Record<string, unknown>, Partial<Facts>?]>([
  ["credentials", "fail", { auth: "open" }],
  ["credentials", "warn", { identitiesFile: "" }],
  ["logins", "warn", { identitiesFile: "" }],
  ["public-url", "fail", { publicUrl: "" }],
  ["public-url", "fail", { publicUrl: "http://depute.example" }],
  ["holder-proofs", "fail", { holderProof: "optional" }],
  ["tls", "fail", { tlsCertFile: "" }],
  ["tls", "warn", { tlsCertFile: "", trustedProxies: ["10.0.0.1"] }],
  ["tls", "warn", { tlsMinVersion: "1.2" }],
  ["tls", "warn", {}, days(13)],
  ["tls", "fail", {}, days(-1)],
  ["tls", "fail", {}, { certificate: () => undefined }],
  ["client-certificates", "warn", { tlsClientCaFile: "" }],
  ["internal-secret", "warn", { internalSecret: "" }],
  ["internal-secret", "fail", { internalSecret: "short" }],
  ["secret-files", "fail", {}, { file: () => ({ exists: false, isReadableByOthers: false }) }],
  ["secret-files", "fail", {}, { file: () => ({ exists: true, isReadableByOthers: true }) }],
  ["secret-files", "warn", {}, { secretVariables: ["DEPUTE_INTERNAL_SECRET"] }],
  ["master-key", "fail", { masterKeyFile: "" }],
  ["master-key", "fail", {}, { isWithin: () => true }],
  ["metrics", "fail", { metricsPort: 0 }],
  ["metrics", "ok", { metricsPort: 0, metricsToken: "scrape" }],
  ["special-rights", "warn", { minters: [] }],
  ["outbound-hosts", "warn", { tasksOutboundHosts: ["private:agents.local"] }],
  ["web-origins", "warn", { allowedOrigins: ["http://app.example"] }],
  ["databases", "fail", { postgresUrl: "postgres://db.example/depute" }],
  ["databases", "fail", { redisUrl: "redis://redis.example" }],
  ["databases", "ok", { postgresUrl: "postgres://127.0.0.1/depute", redisUrl: "" }],
  ["data-folder", "warn", {}],
  ["data-folder", "fail", {}, { file: () => ({ exists: true, isReadableByOthers: true }) }],
])("%s is %s for %j", (id, status, settings, facts = {}) => {
  const finding = run(id, { ...GOOD, ...facts, settings: { ...GOOD.settings, ...settings } });
  expect(finding?.status).toBe(status);
  if (status !== "ok") expect(finding?.message).toMatch(/; \w+/);
});

test("the hardening list of docs/security.md has the same lines", () => {
  const page = readFileSync("docs/security.md", "utf8");
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| (.+?) \| .+ \|$/gm)].map(([, id, measure]) => [
    id,
    measure,
  ]);
  expect(rows).toEqual(CHECKS.map(({ id, measure }) => [id, measure]));
});
