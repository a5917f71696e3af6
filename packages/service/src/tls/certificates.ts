import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import type { Timers } from "@depute/core";
import type { Logger } from "../log.ts";
import { SettingsError } from "../settings.ts";

/** The settings of TLS. An empty path means that no file is configured. */
export interface TlsSettings {
  /** PEM file with the certificate of every listener and its chain. */
  readonly tlsCertFile: string;
  /** PEM file with the key of the certificate. */
  readonly tlsKeyFile: string;
  /** PEM file with the authorities that sign client certificates. */
  readonly tlsClientCaFile: string;
  /** Whether a client must present a certificate: `required` or `optional`. No effect without `tlsClientCaFile`. */
  readonly tlsClientAuth: string;
  /** PEM file with the authorities that sign the certificates of the platform's own processes and of Redis. */
  readonly tlsCaFile: string;
  /** The oldest accepted version of TLS: `1.2` or `1.3`. */
  readonly tlsMinVersion: string;
}

export interface CertificatesOptions {
  readonly settings: TlsSettings;
  readonly timers: Timers;
  readonly log: Logger;
}

/** Options of a listener with TLS. */
export interface ListenerTls {
  readonly secureContext: SecureContextOptions;
  /** Whether the server asks clients for a certificate. */
  readonly requestCert: boolean;
  /** Whether a client without a valid certificate is refused. */
  readonly rejectUnauthorized: boolean;
}

/**
 * Milliseconds between two reads of the files. The files are polled, because no reliable event reports that an
 * orchestrator replaced a mounted file.
 */
const CHECK_INTERVAL_MS = 5000;

/**
 * The certificates of a process. Files that change are read again. Then new connections use the new certificates, and
 * open connections continue unchanged.
 */
export class Certificates {
  readonly #options: CertificatesOptions;
  readonly #listeners = new Set<(context: SecureContextOptions) => void>();
  #loaded: Loaded;
  #refused = "";
  #cancel: () => void = () => {};

  private constructor(options: CertificatesOptions) {
    this.#options = options;
    this.#loaded = load(options.settings);
  }

  /**
   * Reads the files of the settings.
   *
   * @throws SettingsError when a setting is missing that another one needs, when a file is missing or malformed, or
   * when the key does not belong to the certificate
   */
  static open(options: CertificatesOptions): Certificates {
    assertComplete(options.settings);
    let certificates: Certificates;
    try {
      certificates = new Certificates(options);
    } catch (cause) {
      const { message } = cause as Error;
      throw new SettingsError(`the files of DEPUTE_TLS_* cannot be used: ${message}`, { cause });
    }
    if (certificates.#loaded.text !== NO_FILES) certificates.#checkLater();
    return certificates;
  }

  /** The options of listeners; undefined when listeners have no TLS. */
  get listener(): ListenerTls | undefined {
    const { tlsCertFile, tlsClientCaFile, tlsClientAuth } = this.#options.settings;
    if (tlsCertFile === "") return undefined;
    const requestCert = tlsClientCaFile !== "";
    return {
      secureContext: this.#loaded.listener,
      requestCert,
      rejectUnauthorized: requestCert && tlsClientAuth === "required",
    };
  }

  /**
   * The TLS context of calls to the platform's other processes. The context presents this process's own
   * certificate, and trusts the configured authorities.
   */
  get caller(): SecureContext {
    this.#loaded.callerContext ??= createSecureContext(this.#loaded.caller);
    return this.#loaded.callerContext;
  }

  /** Calls the listener after each change of the files. The returned function removes the listener. */
  onChange(listener: (context: SecureContextOptions) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the files again. Logs malformed files once, and keeps the certificates in use. */
  check(): void {
    let next: Loaded;
    try {
      next = load(this.#options.settings);
    } catch (cause) {
      const { message } = cause as Error;
      if (message !== this.#refused)
        this.#options.log.error(
          { err: cause },
          "the changed certificates cannot be used; the old certificates stay in use",
        );
      this.#refused = message;
      return;
    }
    this.#refused = "";
    if (next.text === this.#loaded.text) return;
    this.#loaded = next;
    for (const listener of this.#listeners) listener(next.listener);
    this.#options.log.info("certificates read again");
  }

  close(): void {
    this.#cancel();
  }

  #checkLater(): void {
    this.#cancel = this.#options.timers.after(CHECK_INTERVAL_MS, () => {
      this.check();
      this.#checkLater();
    });
  }
}

interface Loaded {
  readonly listener: SecureContextOptions;
  readonly caller: SecureContextOptions;
  callerContext?: SecureContext;
  /** The joined texts of all files. If the next read gives the same text, no file has changed. */
  readonly text: string;
}

/**
 * The value of `text` when no file is configured. Without files, the certificates never change and need no
 * checks.
 */
const NO_FILES = JSON.stringify([null, null, null, null]);

/** Reads and checks all files of the settings. */
function load({ tlsCertFile, tlsKeyFile, tlsClientCaFile, tlsCaFile, tlsMinVersion }: TlsSettings): Loaded {
  const [cert, key, clientCa, ca] = [tlsCertFile, tlsKeyFile, tlsClientCaFile, tlsCaFile].map((path) =>
    path === "" ? undefined : readFileSync(path, "utf8"),
  );
  assertCertificates("DEPUTE_TLS_CLIENT_CA_FILE", clientCa);
  assertCertificates("DEPUTE_TLS_CA_FILE", ca);
  const common: SecureContextOptions = {
    minVersion: tlsMinVersion === "1.3" ? "TLSv1.3" : "TLSv1.2",
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  };
  const listener = { ...common, ...(clientCa !== undefined && { ca: clientCa }) };
  const caller = { ...common, ...(ca !== undefined && { ca }) };
  // The results of both calls are not used. The calls throw if a file is malformed, or if the key does not belong to
  // the certificate.
  createSecureContext(listener);
  createSecureContext(caller);
  return { listener, caller, text: JSON.stringify([cert, key, clientCa, ca]) };
}

/**
 * Returns the configured authorities of the platform's processes and of Redis, in PEM; undefined for the authorities of
 * the system.
 *
 * @throws SettingsError when the file cannot be read
 */
export function readAuthorities({ tlsCaFile }: Pick<TlsSettings, "tlsCaFile">): string | undefined {
  if (tlsCaFile === "") return undefined;
  try {
    return readFileSync(tlsCaFile, "utf8");
  } catch (cause) {
    throw new SettingsError(`DEPUTE_TLS_CA_FILE cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Refuses a file of authorities that contains no certificate. Node.js would accept such a file, and then trust no peer.
 */
function assertCertificates(variable: string, pem: string | undefined): void {
  if (pem !== undefined && !pem.includes("-----BEGIN CERTIFICATE-----"))
    throw new Error(
      `the file of ${variable} contains no certificate; write the certificates of the authorities into it, in PEM`,
    );
}

function assertComplete({ tlsCertFile, tlsKeyFile, tlsClientCaFile }: TlsSettings): void {
  if ((tlsCertFile === "") !== (tlsKeyFile === ""))
    throw new SettingsError("DEPUTE_TLS_CERT_FILE and DEPUTE_TLS_KEY_FILE belong together: set both or none");
  if (tlsClientCaFile !== "" && tlsCertFile === "")
    throw new SettingsError(
      "DEPUTE_TLS_CLIENT_CA_FILE needs DEPUTE_TLS_CERT_FILE: clients present certificates over TLS only",
    );
}
