import { CommandError } from "../exit-codes.ts";
import type { Context } from "./config.ts";
import { readText } from "./files.ts";

/** The TLS options of a connection to the platform. Certificates and keys are PEM texts. */
export interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Reads the files that a context names for TLS; undefined if the context names no such file.
 *
 * @throws CommandError if a file lacks the expected content, or if only one of client certificate and key is named
 */
export function tlsOf({ caFile, clientCertFile, clientKeyFile }: Context): ClientTls | undefined {
  if ((clientCertFile === undefined) !== (clientKeyFile === undefined))
    throw new CommandError(
      "a client certificate needs its key: set --client-cert-file and --client-key-file",
    );
  if (caFile === undefined && clientCertFile === undefined) return undefined;
  return {
    ...(caFile !== undefined && { ca: readPem(caFile, "CERTIFICATE") }),
    ...(clientCertFile !== undefined && { cert: readPem(clientCertFile, "CERTIFICATE") }),
    ...(clientKeyFile !== undefined && { key: readPem(clientKeyFile, "PRIVATE KEY") }),
  };
}

function readPem(path: string, label: string): string {
  const text = readText(path);
  if (new RegExp(`-----BEGIN [A-Z ]*${label}-----`).test(text)) return text;
  throw new CommandError(`${path} has no ${label.toLowerCase()} in PEM; name the file that has it`);
}

/** Error codes of Node.js and OpenSSL that mean that the client does not trust the platform's certificate. */
const UNTRUSTED = new Set([
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** The function looks for a TLS error in at most this many nested causes. */
const MAX_CAUSES = 5;

/**
 * Returns the reason of an OpenSSL error, such as `wrong version number`, without the places in OpenSSL's source code.
 * Returns other texts unchanged.
 */
export function readableTlsError(text: string): string {
  // thread:error:number:library:function:reason:file:line:data
  return text.replace(/[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):[\s\S]*$/, "TLS: $1");
}

/** Returns what the user can do about a TLS error; undefined for every other error. */
export function tlsAdvice(error: unknown): string | undefined {
  let cause = error;
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth++, cause = cause.cause) {
    // The code of a ConnectError is a number, and the codes of TLS errors are strings.
    const code = "code" in cause ? String(cause.code) : "";
    if (UNTRUSTED.has(code))
      return "check --server, and name the authority of its certificate with --ca-file";
    if (/^ERR_SSL_.*ALERT.*CERTIFICATE|^ERR_SSL_.*ALERT_UNKNOWN_CA$/.test(code))
      return "the platform requires a client certificate: set --client-cert-file and --client-key-file";
    if (code === "EPROTO" || code.startsWith("ERR_SSL_"))
      return "check whether --server is an http or an https address";
  }
  return undefined;
}
