/**
 * The result of a check. `warn`: a weakness that the operator may accept. `fail`: a fault that the operator must
 * correct before other users may call the platform.
 */
export type Status = "ok" | "warn" | "fail";

/** The facts about a file, as this process sees them. */
export interface FileFacts {
  readonly exists: boolean;
  /** Whether other users of the machine may read the file. */
  readonly isReadableByOthers: boolean;
}

/** A certificate of the deployment. */
export interface CertificateFacts {
  /** The end of the certificate's validity, in milliseconds since the Unix epoch. */
  readonly expireMs: number;
  /** Whether the certificate is valid for a host, which is a name or an IP address. */
  readonly isFor: (host: string) => boolean;
  /** Whether the file at a path contains the certificate's private key. */
  readonly hasKey: (path: string) => boolean;
}

/** A file with a secret. */
export interface SecretFile {
  /** The environment variable that names the file. */
  readonly variable: string;
  readonly path: string;
}

/** The facts about a deployment that the checks use. */
export interface Facts {
  /** The effective values of the settings, by name. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Returns the name of a setting's environment variable. */
  readonly variableOf: (name: string) => string;
  /** The variables that contain a secret themselves, instead of naming a file. */
  readonly secretVariables: readonly string[];
  /** The files with secrets that the environment names. */
  readonly secretFiles: readonly SecretFile[];
  readonly nowMs: number;
  /** Returns the facts about the file or folder at a path. */
  readonly file: (path: string) => FileFacts;
  /** Returns the first certificate of a PEM file; undefined if the file has none. */
  readonly certificate: (path: string) => CertificateFacts | undefined;
  /** Returns whether a path is inside a folder. */
  readonly isWithin: (path: string, folder: string) => boolean;
}

/** The outcome of a check. The message states the result in one sentence and, unless the status is `ok`, the remedy. */
export interface Finding {
  readonly status: Status;
  readonly message: string;
}

/** One line of the hardening list. The list in docs/security.md contains the same lines. */
export interface Check {
  readonly id: string;
  /** The security measure that the check looks for, as an instruction to the operator. */
  readonly measure: string;
  readonly run: (facts: Facts) => Finding;
}

const ok = (message: string): Finding => ({ status: "ok", message });
const warn = (message: string): Finding => ({ status: "warn", message });
const fail = (message: string): Finding => ({ status: "fail", message });

/** A certificate that expires within this many days causes a warning. */
const EXPIRY_DAYS = 14;
const DAY_MS = 86_400_000;
/** Minimum length of the internal secret in characters: 32 bytes in base64url. */
const MIN_SECRET = 43;

/** The checks of `depute doctor`, in the order of the hardening list. */
export const CHECKS: readonly Check[] = [
  {
    id: "credentials",
    measure: "require credentials",
    run({ settings }) {
      if (settings.auth !== "required") {
        return fail("calls without credentials are served; set DEPUTE_AUTH=required");
      }
      const hasFile = settings.credentialsFile !== "" || settings.identitiesFile !== "";
      return hasFile
        ? ok("calls need credentials")
        : warn(
            "only holder proofs are accepted; set DEPUTE_IDENTITIES_FILE or DEPUTE_CREDENTIALS_FILE for other callers",
          );
    },
  },
  {
    id: "logins",
    measure: "accept logins of your issuer in place of secrets",
    run: ({ settings }) =>
      settings.identitiesFile === ""
        ? warn("no issuer is configured; set DEPUTE_IDENTITIES_FILE")
        : ok("tokens of issuers or client certificates are accepted"),
  },
  {
    id: "public-url",
    measure: "state the address that clients use, because proofs name it",
    run({ settings }) {
      const url = String(settings.publicUrl);
      if (url === "") return fail("the public address is unknown; set DEPUTE_PUBLIC_URL");
      if (url.startsWith("https:")) return ok(`clients use ${url}`);
      return fail(`${url} has no TLS; offer clients an https address, and set it in DEPUTE_PUBLIC_URL`);
    },
  },
  {
    id: "holder-proofs",
    measure: "require holder proofs for tokens",
    run: ({ settings }) =>
      settings.holderProof === "required"
        ? ok("a stolen token is useless without its holder's key")
        : fail("a stolen token can be used; set DEPUTE_HOLDER_PROOF=required"),
  },
  {
    id: "tls",
    measure: "serve TLS, on every listener and between processes",
    run: tls,
  },
  {
    id: "client-certificates",
    measure: "require client certificates between processes",
    run({ settings }) {
      if (settings.tlsClientCaFile === "") {
        return warn(
          "listeners ask for no client certificate; set DEPUTE_TLS_CLIENT_CA_FILE where services run apart",
        );
      }
      return settings.tlsClientAuth === "required"
        ? ok("listeners require client certificates")
        : warn("clients may leave out their certificate; set DEPUTE_TLS_CLIENT_AUTH=required");
    },
  },
  {
    id: "internal-secret",
    measure: "give processes a secret of 32 random bytes",
    run({ settings }) {
      // While operators replace the secret, the setting contains several secrets, one on each line.
      const secrets = String(settings.internalSecret)
        .split(/\s+/)
        .filter((secret) => secret !== "");
      if (secrets.length === 0)
        return warn("processes share no secret; set DEPUTE_INTERNAL_SECRET_FILE where services run apart");
      return secrets.some(({ length }) => length < MIN_SECRET)
        ? fail("the internal secret is short; write 32 random bytes in base64url to its file")
        : ok("processes prove a secret to one another");
    },
  },
  {
    id: "secret-files",
    measure: "read secrets from files that only the platform's user can read",
    run: secretFiles,
  },
  {
    id: "master-key",
    measure: "keep the master key apart from backups of the database",
    run({ settings, isWithin }) {
      const path = String(settings.masterKeyFile);
      if (path === "") return fail("the master key is in the data folder; set DEPUTE_MASTER_KEY_FILE");
      return isWithin(path, String(settings.dataDir))
        ? fail("the file of DEPUTE_MASTER_KEY_FILE is in the data folder; move it to another folder")
        : ok("the master key is not in the data folder");
    },
  },
  {
    id: "metrics",
    measure: "protect the metrics",
    run: ({ settings: { metricsPort, metricsToken } }) =>
      metricsPort === 0 && metricsToken === ""
        ? fail("any caller can read the metrics; set DEPUTE_METRICS_PORT or DEPUTE_METRICS_TOKEN")
        : ok("metrics have a port or a token of their own"),
  },
  {
    id: "special-rights",
    measure: "name the principals with special rights, and no others",
    run({ settings, variableOf }) {
      const names = ["minters", "auditors", "trustOperators", "boundsOperators", "aspAuthorityOperators"];
      const open = names.filter((name) => listOf(settings[name]).includes("local"));
      if (open.length > 0) {
        return fail(
          `${open.map(variableOf).join(", ")} names local, which is every caller without credentials; name keys`,
        );
      }
      const empty = names.filter((name) => listOf(settings[name]).length === 0);
      return empty.length === 0
        ? ok("each special right has its principals")
        : warn(`no principal is named in ${empty.map(variableOf).join(", ")}; check that this is intended`);
    },
  },
  {
    id: "outbound-hosts",
    measure: "list the hosts that the platform may call",
    run({ settings }) {
      const hosts = Object.entries(settings)
        .filter(([name]) => name.endsWith("Hosts") && name !== "allowedHosts")
        .flatMap(([, hosts]) => listOf(hosts));
      const inner = hosts.filter((host) => host.startsWith("private:"));
      if (inner.length === 0) return ok(`${hosts.length} hosts are listed, and none is private`);
      return warn(`private hosts may be called: ${inner.join(", ")}; keep the list short`);
    },
  },
  {
    id: "web-origins",
    measure: "list the web origins that may call the platform",
    run({ settings }) {
      const plain = listOf(settings.allowedOrigins).filter((origin) => origin.startsWith("http:"));
      return plain.length === 0
        ? ok("listed origins have TLS")
        : warn(`origins without TLS may call: ${plain.join(", ")}; list https origins`);
    },
  },
  {
    id: "databases",
    measure: "connect to Postgres and Redis with TLS and a user of their own",
    run: databases,
  },
  {
    id: "witness",
    measure: "keep the heads of the logs outside the data folder, against old copies of it",
    run({ settings, isWithin }) {
      const place = String(settings.witness);
      if (place === "") return warn("an old copy of the data folder starts; set DEPUTE_WITNESS");
      if (place.startsWith("http:")) return fail("the witness is called without TLS; name an https address");
      return !place.startsWith("https:") && isWithin(place, String(settings.dataDir))
        ? fail("the folder of DEPUTE_WITNESS is in the data folder; name another folder")
        : ok("the heads of the logs are kept outside the data folder");
    },
  },
  {
    id: "data-folder",
    measure: "keep several copies of `revocations.checkpoint` apart from the store",
    run({ settings, file }) {
      const folder = String(settings.dataDir);
      const { exists, isReadableByOthers } = file(folder);
      if (!exists)
        return warn(
          `${folder} does not exist yet; copy its revocations.checkpoint once the platform has run`,
        );
      return isReadableByOthers
        ? fail(`other users can read ${folder}; run chmod 700 on it`)
        : warn("this command cannot check for copies of revocations.checkpoint; make copies regularly");
    },
  },
];

/** The settings with the addresses of the platform's own services. */
const SERVICE_URLS = ["registryUrl", "tasksUrl", "tokensUrl", "verifierUrl"];

function tls(facts: Facts): Finding {
  const { settings, certificate, nowMs, variableOf } = facts;
  const plain = SERVICE_URLS.filter((name) =>
    listOf(settings[name]).some((url) => url.startsWith("http:") && !isLocal(url)),
  );
  if (plain.length > 0) {
    return fail(
      `${plain.map(variableOf).join(", ")} names a service of another machine without TLS; write https`,
    );
  }
  const path = String(settings.tlsCertFile);
  if (path === "") {
    if (settings.socketDir !== "" || listOf(settings.trustedProxies).length > 0) {
      return warn("a proxy terminates TLS; keep the way from it to the platform closed to others");
    }
    return fail("listeners have no TLS; set DEPUTE_TLS_CERT_FILE and DEPUTE_TLS_KEY_FILE");
  }
  const found = certificate(path);
  if (found === undefined) return fail(`${path} has no certificate in PEM; check the file`);
  if (!found.hasKey(String(settings.tlsKeyFile))) {
    return fail("DEPUTE_TLS_KEY_FILE does not contain the certificate's key; name the file of that key");
  }
  const days = Math.floor((found.expireMs - nowMs) / DAY_MS);
  if (days < 0) return fail("the certificate has expired; replace the file, which needs no restart");
  if (days < EXPIRY_DAYS)
    return warn(`the certificate expires in ${days} days; replace the file, which needs no restart`);
  const host = hostOf(String(settings.publicUrl));
  if (host !== undefined && listOf(settings.trustedProxies).length === 0 && !found.isFor(host)) {
    return warn(`the certificate is not for ${host}; get one with the name of DEPUTE_PUBLIC_URL`);
  }
  if (!isReadable(facts, "tlsCaFile")) {
    return fail("the file of DEPUTE_TLS_CA_FILE cannot be read; check the path and the rights");
  }
  return settings.tlsMinVersion === "1.3"
    ? ok(`listeners have TLS; the certificate holds for ${days} days`)
    : warn("TLS 1.2 is accepted; set DEPUTE_TLS_MIN_VERSION=1.3 if all clients can");
}

/** True if the file that a setting names exists, or if the setting is empty. */
function isReadable({ settings, file }: Facts, name: string): boolean {
  const path = String(settings[name] ?? "");
  return path === "" || file(path).exists;
}

/** The settings that name files with secrets, or with the permissions of callers. */
const OWN_FILES = [
  ...["credentialsFile", "identitiesFile", "masterKeyFile", "tlsKeyFile"],
  ...["rootKeyFile", "verifierKeyFile", "configFile"],
];

function secretFiles({ settings, secretVariables, secretFiles: named, file }: Facts): Finding {
  const own = OWN_FILES.map((name) => String(settings[name] ?? "")).filter((path) => path !== "");
  const paths = [...own, ...named.map(({ path }) => path)];
  const missing = paths.filter((path) => !file(path).exists);
  if (missing.length > 0) return fail(`${missing.join(", ")} cannot be read; check the paths and the rights`);
  const shared = paths.filter((path) => file(path).isReadableByOthers);
  if (shared.length > 0) return fail(`other users can read ${shared.join(", ")}; run chmod 600 on them`);
  if (secretVariables.length > 0) {
    return warn(`secrets are in the environment: ${secretVariables.join(", ")}; name files with ..._FILE`);
  }
  return ok("secrets are in files that other users cannot read");
}

function databases({ settings }: Facts): Finding {
  const weak = [
    ["DEPUTE_POSTGRES_URL", String(settings.postgresUrl), /[?&]sslmode=(?:verify-full|verify-ca)\b/],
    ["DEPUTE_REDIS_URL", String(settings.redisUrl), /^rediss:/],
  ] as const;
  const open = weak
    .filter(([, url, secure]) => url !== "" && !isLocal(url) && !secure.test(url))
    .map(([name]) => name);
  if (open.length > 0) {
    return fail(
      `${open.join(" and ")} has no verified TLS; use sslmode=verify-full for Postgres and rediss: for Redis`,
    );
  }
  const shared = [
    ["DEPUTE_POSTGRES_URL", String(settings.postgresUrl), ["", "postgres"]],
    ["DEPUTE_REDIS_URL", String(settings.redisUrl), ["", "default"]],
  ] as const;
  const unnamed = shared
    .filter(([, url, users]) => url !== "" && !isLocal(url) && isUserOf(url, users))
    .map(([name]) => name);
  if (unnamed.length > 0) {
    return warn(
      `${unnamed.join(" and ")} names no user that only the platform uses; create a user with only the rights that it needs`,
    );
  }
  return ok("no database is reached over a network without TLS");
}

/** Whether the URL of a database contains one of these user names. */
function isUserOf(url: string, users: readonly string[]): boolean {
  return users.includes(decodeURIComponent(new URL(url).username));
}

/** Returns the host of a URL, without the brackets of an IPv6 address; undefined if the text is not a URL. */
function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, "") : undefined;
}

/** Whether a URL names this machine. */
function isLocal(url: string): boolean {
  const { hostname } = new URL(url);
  return ["", "localhost", "127.0.0.1", "[::1]"].includes(hostname);
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as string[]) : [];
}
