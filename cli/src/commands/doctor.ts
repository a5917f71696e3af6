import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { isAbsolute, relative, resolve } from "node:path";
import {
  envName,
  fileOfSecret,
  mergeSettings,
  readSettings,
  type SettingsTable,
  secretFileVariable,
} from "@depute/service";
import { readConfigFile } from "../config/config-file.ts";
import { type CertificateFacts, CHECKS, type Facts, type FileFacts, type Status } from "../doctor/checks.ts";
import { EXIT } from "../exit-codes.ts";
import { platformSettings } from "../modules.ts";
import { escapeControls } from "../print/safe-text.ts";

const OWN_SETTINGS = {
  json: { type: "bool", default: false, help: "print the findings as JSON", group: "Output" },
} as const satisfies SettingsTable;

const MARKS: Readonly<Record<Status, string>> = { ok: "ok  ", warn: "WARN", fail: "FAIL" };

/**
 * `depute doctor`: checks the settings of a deployment against the hardening list of docs/security.md. The command
 * reads the flags, variables and file that the platform would read, and starts nothing.
 *
 * @returns the exit code: 1 if a check failed
 */
export async function doctor(args: readonly string[]): Promise<number> {
  const table = platformSettings();
  const program = {
    name: "depute doctor",
    description: "Checks the settings of a deployment by the hardening list, and starts nothing.",
  };
  const file = await readConfigFile(args, table);
  const { json, ...settings } = readSettings(mergeSettings(table, OWN_SETTINGS), args, program, file);
  const facts = factsOf(table, settings);
  const findings = CHECKS.map(({ id, measure, run }) => ({ id, measure, ...run(facts) }));
  if (json) console.log(JSON.stringify(findings, undefined, 2));
  else
    for (const { id, status, message } of findings)
      console.log(`${MARKS[status]}  ${id}: ${escapeControls(message)}`);
  return findings.some(({ status }) => status === "fail") ? EXIT.failed : EXIT.ok;
}

function factsOf(table: SettingsTable, settings: Readonly<Record<string, unknown>>): Facts {
  const secrets = Object.keys(table).filter((name) => table[name]?.isSecret === true);
  return {
    settings,
    variableOf: envName,
    secretVariables: secrets.map(envName).filter((name) => (process.env[name] ?? "") !== ""),
    secretFiles: secrets
      .map((name) => ({ variable: secretFileVariable(name), path: fileOfSecret(name) }))
      .filter(({ path }) => path !== ""),
    nowMs: Date.now(),
    file: fileFacts,
    certificate(path) {
      try {
        return factsOfCertificate(new X509Certificate(readFileSync(path)));
      } catch {
        return undefined;
      }
    },
    isWithin(path, folder) {
      const way = relative(resolve(folder), resolve(path));
      return !way.startsWith("..") && !isAbsolute(way);
    },
  };
}

function factsOfCertificate(certificate: X509Certificate): CertificateFacts {
  return {
    expireMs: Date.parse(certificate.validTo),
    // Node throws if `checkIP` gets a name.
    isFor: (host) =>
      (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined,
    hasKey(path) {
      try {
        return certificate.checkPrivateKey(createPrivateKey(readFileSync(path)));
      } catch {
        return false;
      }
    },
  };
}

/** The mode bits that let the file's group or all other users read the file. */
const OTHERS_READ = 0o044;

function fileFacts(path: string): FileFacts {
  try {
    return { exists: true, isReadableByOthers: (statSync(path).mode & OTHERS_READ) !== 0 };
  } catch {
    return { exists: false, isReadableByOthers: false };
  }
}
