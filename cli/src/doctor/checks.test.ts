import { readFileSync } from "node:fs";
import { envName } from "@depute/service";
import { describe, expect, test } from "vitest";
import { platformSettings } from "../modules.ts";
import { type CertificateFacts, CHECKS, type Facts, type Status } from "./checks.ts";

/** The facts of a deployment that passes every check. */
const GOOD: Facts = {
  settings: {
    ...{ auth: "required", credentialsFile: "", identitiesFile: "/etc/depute/identities.json" },
    ...{ publicUrl: "https://depute.example", holderProof: "required", dataDir: "/data" },
    ...{ registryUrl: ["https://registry.example"], tasksUrl: [], tokensUrl: [], verifierUrl: [] },
    ...{ tlsClientAuth: "required", tlsCaFile: "/tls/ca.pem", nekteHosts: [], a2aWebhookHosts: [] },
    ...{ witness: "/mnt/witness" },
    ...{ tlsCertFile: "/tls/cert.pem", tlsKeyFile: "/tls/key.pem", tlsClientCaFile: "/tls/ca.pem" },
    ...{ tlsMinVersion: "1.3", internalSecret: "x".repeat(43), masterKeyFile: "/etc/depute/master.key" },
    ...{ metricsPort: 9090, metricsToken: "", minters: ["a"], auditors: ["a"], trustOperators: ["a"] },
    ...{ boundsOperators: ["a"], aspAuthorityOperators: ["a"], tasksOutboundHosts: ["agents.example"] },
    ...{ allowedOrigins: ["https://app.example"], trustedProxies: [], socketDir: "" },
    ...{
      postgresUrl: "postgres://depute@db.example/depute?sslmode=verify-full",
      redisUrl: "rediss://depute@redis.example",
    },
  },
  variableOf: (name) => `DEPUTE_${name}`,
  secretVariables: [],
  secretFiles: [],
  nowMs: 0,
  file: () => ({ exists: true, isReadableByOthers: false }),
  certificate: () => certificate(),
  isWithin: () => false,
};

function certificate(more: Partial<CertificateFacts> = {}): CertificateFacts {
  return { expireMs: 100 * 86_400_000, isFor: () => true, hasKey: () => true, ...more };
}

const run = (id: string, facts: Facts) => CHECKS.find((check) => check.id === id)?.run(facts);
const days = (number: number): Partial<Facts> => ({
  certificate: () => certificate({ expireMs: number * 86_400_000 }),
});

test.each(CHECKS.filter(({ id }) => id !== "data-folder"))("a good deployment passes $id", ({ id }) => {
  expect(run(id, GOOD)?.status).toBe("ok");
});

/** The facts of a machine on which other users may read one file. */
function readableByOthers(path: string): Partial<Facts> {
  return { file: (each) => ({ exists: true, isReadableByOthers: each === path }) };
}

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
  ["tls", "fail", {}, { certificate: () => certificate({ hasKey: () => false }) }],
  ["tls", "warn", {}, { certificate: () => certificate({ isFor: () => false }) }],
  ["tls", "ok", { trustedProxies: ["10.0.0.1"] }, { certificate: () => certificate({ isFor: () => false }) }],
  ["tls", "fail", {}, { file: (path) => ({ exists: path !== "/tls/ca.pem", isReadableByOthers: false }) }],
  ["tls", "fail", { tasksUrl: ["https://a.example", "http://b.example"] }],
  ["tls", "ok", { tasksUrl: ["http://127.0.0.1:8082"] }],
  ["client-certificates", "warn", { tlsClientCaFile: "" }],
  ["client-certificates", "warn", { tlsClientAuth: "optional" }],
  ["internal-secret", "warn", { internalSecret: "" }],
  ["internal-secret", "fail", { internalSecret: "short" }],
  ["internal-secret", "fail", { internalSecret: `${"x".repeat(43)}\nshort` }],
  ["internal-secret", "ok", { internalSecret: `${"x".repeat(43)}\n${"y".repeat(43)}\n` }],
  ["secret-files", "fail", { rootKeyFile: "/root.key" }, readableByOthers("/root.key")],
  ["secret-files", "fail", { verifierKeyFile: "/verifier.key" }, readableByOthers("/verifier.key")],
  [
    "secret-files",
    "fail",
    {},
    {
      secretFiles: [{ variable: "DEPUTE_INTERNAL_SECRET_FILE", path: "/internal" }],
      ...readableByOthers("/internal"),
    },
  ],
  ["secret-files", "fail", {}, { file: () => ({ exists: false, isReadableByOthers: false }) }],
  ["secret-files", "fail", {}, { file: () => ({ exists: true, isReadableByOthers: true }) }],
  ["secret-files", "warn", {}, { secretVariables: ["DEPUTE_INTERNAL_SECRET"] }],
  ["master-key", "fail", { masterKeyFile: "" }],
  ["master-key", "fail", {}, { isWithin: () => true }],
  ["metrics", "fail", { metricsPort: 0 }],
  ["metrics", "ok", { metricsPort: 0, metricsToken: "scrape" }],
  ["special-rights", "warn", { minters: [] }],
  ["special-rights", "fail", { trustOperators: ["a", "local"] }],
  ["outbound-hosts", "warn", { nekteHosts: ["private:agents.local"] }],
  ["outbound-hosts", "ok", { allowedHosts: ["private:not-outbound"] }],
  ["databases", "warn", { postgresUrl: "postgres://postgres@db.example/depute?sslmode=verify-full" }],
  ["databases", "warn", { postgresUrl: "postgres://db.example/depute?sslmode=verify-full" }],
  ["databases", "warn", { redisUrl: "rediss://redis.example" }],
  ["witness", "warn", { witness: "" }],
  ["witness", "fail", {}, { isWithin: () => true }],
  ["witness", "fail", { witness: "http://witness.example" }],
  ["witness", "ok", { witness: "https://witness.example" }],
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

describe("each check reads the settings that its line of docs/security.md names", () => {
  const table = platformSettings();
  const names = new Map(Object.keys(table).map((name) => [envName(name), name]));
  const page = readFileSync("docs/security.md", "utf8");
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| .+? \| (.+) \|$/gm)].map(([, id = "", cell = ""]) => {
    const variables = [...cell.matchAll(/DEPUTE_[A-Z0-9_]+[A-Z0-9]/g)].map(([variable]) => variable);
    return [id, variables] as const;
  });

  /** Returns the setting of a variable. A variable `..._FILE` belongs to the setting of the secret. */
  const settingOf = (variable: string) => names.get(variable) ?? names.get(variable.replace(/_FILE$/, ""));

  test.each(rows)("%s", (id, variables) => {
    const read = new Set<string>();
    const settings = new Proxy(GOOD.settings, {
      get(target, name) {
        read.add(String(name));
        return Reflect.get(target, name);
      },
      ownKeys(target) {
        return Reflect.ownKeys(target);
      },
    });
    run(id, { ...GOOD, settings });
    for (const variable of variables) {
      const name = settingOf(variable);
      expect(name, `${variable} is a setting`).toBeDefined();
      expect(read, `${id} reads ${variable}`).toContain(name);
    }
  });

  test("the check reads every setting that lists hosts to call", () => {
    const hosts = Object.keys(table).filter((name) => name.endsWith("Hosts") && name !== "allowedHosts");
    for (const name of hosts) {
      const settings = { ...GOOD.settings, [name]: ["private:inner.example"] };
      expect(run("outbound-hosts", { ...GOOD, settings })?.status, name).toBe("warn");
    }
  });
});
