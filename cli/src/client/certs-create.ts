import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "../exit-codes.ts";
import type { Invocation } from "../table/command.ts";
import { write } from "./output.ts";
import { durationMs } from "./request.ts";

/**
 * The validity of a new certificate begins this many milliseconds before the current time, because the clocks of two
 * machines may differ.
 */
const SKEW_MS = 5 * 60_000;

const DEFAULT_HOSTS = ["localhost", "127.0.0.1", "::1"];

/**
 * `depute certs create`. The command does not store the private key of the certificate authority, so that the authority
 * can issue no further certificate.
 */
export async function createCertificates({ values }: Invocation): Promise<void> {
  const { DevelopmentAuthority } = await import("@depute/service/development-certificates");
  const folder = String(values.DIR);
  const hosts = values.host === undefined ? DEFAULT_HOSTS : [values.host].flat().map(String);
  const notAfter = new Date(Date.now() + durationMs(String(values.validity), "--validity"));
  const authority = await DevelopmentAuthority.create(new Date(Date.now() - SKEW_MS), notAfter);
  const server = await authority.issue({ hosts });
  const client = await authority.issue({ uris: [String(values.client)] });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  save(folder, {
    "ca.pem": authority.certificate,
    "server.pem": server.certificate,
    "server.key": server.key,
    "client.pem": client.certificate,
    "client.key": client.key,
  });
  write(`export DEPUTE_TLS_CERT_FILE=${join(folder, "server.pem")}`);
  write(`export DEPUTE_TLS_KEY_FILE=${join(folder, "server.key")}`);
  write(`export DEPUTE_TLS_CA_FILE=${join(folder, "ca.pem")}`);
}

/** Creates the files with mode 0600. Fails if one of the files already exists, and never replaces a file. */
function save(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    try {
      writeFileSync(join(folder, name), `${text}\n`, { mode: 0o600, flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      throw new CommandError(`${join(folder, name)} exists already; choose another folder`);
    }
  }
}
