import { join } from "node:path";
import { LOG_LEVELS } from "./log.ts";
import type { ModuleName, ServiceName } from "./names.ts";
import { quotaSettings } from "./quotas/quota-settings.ts";
import { defineSettings, type Settings } from "./settings.ts";
import { type Place, urlOfHost } from "./tls/listener.ts";

const PLACE = "Where";
const ACCESS = "Who may call";
const LIMITS = "Limits";
const SIGHT = "What is seen";
const CARRIAGE = "How calls are carried";
const TLS = "TLS";

/** The settings of every process, independent of the services that it hosts. */
export const commonSettings = defineSettings({
  configFile: {
    type: "string",
    default: "",
    help: "YAML file with settings of the platform, by their names in camel case; flags and variables win over it; empty: none",
    group: PLACE,
  },
  dataDir: { type: "string", default: "./data", help: "folder for the services' files", group: PLACE },
  host: { type: "string", default: "127.0.0.1", help: "address to listen on", group: PLACE },
  socketDir: {
    type: "string",
    default: "",
    help: "folder of UNIX sockets to listen on, such as gateway.sock, in place of host and port; empty: none",
    group: PLACE,
  },
  gatewayPort: { type: "int", default: 8080, min: 0, max: 65535, help: "0: any free port", group: PLACE },
  gatewaySharedPort: {
    type: "int",
    default: 0,
    min: 0,
    max: 65535,
    help: "second port of the gateway, which all gateways of the machine may share; 0: none",
    group: PLACE,
  },
  registryPort: { type: "int", default: 8081, min: 0, max: 65535, help: "0: any free port", group: PLACE },
  tasksPort: { type: "int", default: 8082, min: 0, max: 65535, help: "0: any free port", group: PLACE },
  tokensPort: { type: "int", default: 8083, min: 0, max: 65535, help: "0: any free port", group: PLACE },
  verifierPort: { type: "int", default: 8084, min: 0, max: 65535, help: "0: any free port", group: PLACE },
  registryUrl: {
    type: "urls",
    default: ["http://127.0.0.1:8081"],
    help: "address of the registry, if it runs in other processes; several replicas: their addresses, separated by commas",
    group: PLACE,
  },
  tasksUrl: {
    type: "urls",
    default: ["http://127.0.0.1:8082"],
    help: "address of the tasks service, if it runs in other processes; several replicas: their addresses, separated by commas",
    group: PLACE,
  },
  tokensUrl: {
    type: "urls",
    default: ["http://127.0.0.1:8083"],
    help: "address of the tokens service, if it runs in other processes; several replicas: their addresses, separated by commas",
    group: PLACE,
  },
  verifierUrl: {
    type: "urls",
    default: ["http://127.0.0.1:8084"],
    help: "address of the verifier, if it runs in other processes; several replicas: their addresses, separated by commas",
    group: PLACE,
  },
  publicUrl: {
    type: "url",
    default: "",
    help: "URL under which clients reach the platform; empty: the address on which it listens",
    group: PLACE,
  },
  redisUrl: {
    type: "url",
    default: "",
    help: "Redis for wake-ups between processes, and for contexts that may not be persisted of replicas; empty: none",
    group: PLACE,
    isSecret: true,
  },
  postgresUrl: {
    type: "url",
    default: "",
    help: "Postgres database for the data of the services; empty: SQLite files in the data folder",
    group: PLACE,
    isSecret: true,
  },
  postgresSchemaPrefix: {
    type: "string",
    default: "depute",
    help: "prefix of the names of the services' schemas, as in PREFIX_tasks",
    group: PLACE,
  },
  replicated: {
    type: "bool",
    default: false,
    help: "whether other processes run the same services on the same database; needs the database and the master key's file",
    group: PLACE,
  },
  masterKeyFile: {
    type: "string",
    default: "",
    help: "the key that seals other keys, 32 bytes in base64url; empty: master.key in the data folder; with it, keys on Postgres are rows",
    group: PLACE,
  },
  replaceKeys: {
    type: "list",
    default: [],
    help: "keys that may differ from the keys with which the stores were created: root, master, verifier, card, callback, session-seal",
    group: PLACE,
  },
  witness: {
    type: "string",
    default: "",
    help: "folder outside the data folder, http(s) address, or other Depute (depute+https://host), that keeps the heads of the logs, so that an old copy of the data does not start; empty: none",
    group: PLACE,
  },
  witnessToken: {
    type: "string",
    default: "",
    help: "bearer token for a witness at an address; empty: none",
    group: PLACE,
    isSecret: true,
  },
  witnessKeyFile: {
    type: "string",
    default: "",
    help: "key file, as of `depute keys new`, that proves the platform to another Depute as its witness; empty: none",
    group: PLACE,
  },
  witnessCaFile: {
    type: "string",
    default: "",
    help: "PEM file with the authorities of another Depute as witness; empty: the system's",
    group: PLACE,
  },
  ids: {
    type: "string",
    choices: ["strict", "relaxed"],
    default: "strict",
    help:
      "ids of DelegateOS contracts, delegations and attestations: the prefix and 12 hexadecimal digits, or any name of up to " +
      "128 letters, digits and . _ : - as in published examples",
    group: ACCESS,
  },
  auth: {
    type: "string",
    choices: ["open", "required"],
    default: "open",
    help: "whether a call without credentials is served; open is for loopback only",
    group: ACCESS,
  },
  credentialsFile: {
    type: "string",
    default: "",
    help: "JSON array of {principal, sha256} for Bearer and X-API-Key secrets",
    group: ACCESS,
  },
  identitiesFile: {
    type: "string",
    default: "",
    help: "JSON file that maps tokens of OpenID Connect issuers and SPIFFE ids to principals; see docs/identities.md",
    group: ACCESS,
  },
  internalSecret: {
    type: "string",
    default: "",
    help: "secret by which the platform's processes recognize each other's calls",
    group: ACCESS,
    isSecret: true,
  },
  allowedHosts: {
    type: "list",
    default: [],
    help:
      "hosts that browsers, and HTTP/1.1 clients of an open server, may name besides loopback names and the public URL's; " +
      "*.example.org allows all names below it",
    group: ACCESS,
  },
  allowedOrigins: {
    type: "list",
    default: [],
    help: "origins of web pages that may call, besides the public URL's, such as https://app.example.org",
    group: ACCESS,
  },

  trustedProxies: {
    type: "list",
    default: [],
    help: "proxies that are trusted to state the client's address: IP addresses, networks such as 10.0.0.0/8, or unix",
    group: ACCESS,
  },
  forwardedHeader: {
    type: "string",
    choices: ["x-forwarded-for", "forwarded"],
    default: "x-forwarded-for",
    help: "header in which trusted proxies name the client's address; they must remove the other header",
    group: ACCESS,
  },

  maxRequestBytes: {
    type: "int",
    default: 4_194_304,
    min: 1024,
    help: "bytes of one request message",
    group: LIMITS,
  },
  bodyTimeout: {
    type: "duration",
    default: "30s",
    help: "maximum time until a request's body has arrived",
    group: LIMITS,
  },
  maxConnections: { type: "int", default: 10_000, min: 1, help: "open connections", group: LIMITS },
  maxConcurrentStreams: {
    type: "int",
    default: 10_000,
    min: 1,
    help: "open calls on one HTTP/2 connection",
    group: LIMITS,
  },
  defaultDeadline: {
    type: "duration",
    default: "30s",
    help: "timeout of a call whose caller sets none",
    group: LIMITS,
  },
  maxDeadline: {
    type: "duration",
    default: "5m",
    help: "maximum timeout of a call, even if its caller sets a longer one",
    group: LIMITS,
  },
  drainTimeout: {
    type: "duration",
    default: "10s",
    help: "time for open calls when the process ends",
    group: LIMITS,
  },

  ...quotaSettings,

  fastPath: {
    type: "bool",
    default: true,
    help: "serve plain calls beside Connect's adapter, at a fraction of its cost",
    group: CARRIAGE,
  },
  maxConnectionAge: {
    type: "duration",
    default: "0s",
    help: "age of a connection at which its client is asked to reconnect, so that clients spread over replicas; 0s: none",
    group: CARRIAGE,
  },

  tlsCertFile: {
    type: "string",
    default: "",
    help: "PEM file with the certificate of every listener and its chain; empty: no TLS",
    group: TLS,
  },
  tlsKeyFile: { type: "string", default: "", help: "PEM file with the certificate's key", group: TLS },
  tlsClientCaFile: {
    type: "string",
    default: "",
    help: "PEM file with the authorities of client certificates; empty: clients present none",
    group: TLS,
  },
  tlsClientAuth: {
    type: "string",
    choices: ["required", "optional"],
    default: "required",
    help: "whether a client must present a certificate, where authorities are set",
    group: TLS,
  },
  tlsCaFile: {
    type: "string",
    default: "",
    help: "PEM file with the authorities of the platform's own processes and of Redis; empty: the system's",
    group: TLS,
  },
  tlsMinVersion: {
    type: "string",
    choices: ["1.2", "1.3"],
    default: "1.2",
    help: "oldest version of TLS that is accepted",
    group: TLS,
  },

  metricsPort: {
    type: "int",
    default: 0,
    min: 0,
    max: 65535,
    help: "separate port for /metrics, /livez and /readyz; other ports then serve no metrics. 0: none",
    group: SIGHT,
  },
  metricsToken: {
    type: "string",
    default: "",
    help: "bearer token that GET /metrics requires; empty: none",
    group: SIGHT,
    isSecret: true,
  },
  logLevel: {
    type: "string",
    choices: LOG_LEVELS,
    default: "info",
    help: "lowest level that is logged",
    group: SIGHT,
  },
  otlpEndpoint: {
    type: "url",
    default: "",
    help: "address to which traces are sent, by OTLP over HTTP; empty: none",
    group: SIGHT,
  },
});

export type CommonSettings = Settings<typeof commonSettings>;

/** Returns the address that a module listens on. */
export function placeOf(settings: CommonSettings, name: ModuleName): Place {
  const { socketDir, host } = settings;
  return socketDir === ""
    ? { host, port: portOf(settings, name) }
    : { path: join(socketDir, `${name}.sock`) };
}

/** Returns the second address that a module listens on; undefined if the module listens on one address. */
export function sharedPlaceOf(
  { host, gatewaySharedPort }: CommonSettings,
  name: ModuleName,
): Place | undefined {
  if (name !== "gateway" || gatewaySharedPort === 0) return undefined;
  return { host, port: gatewaySharedPort, isShared: true };
}

/** Returns the URL of a module that listens on the configured host and port. */
export function addressOf(settings: CommonSettings, name: ModuleName): string {
  const scheme = settings.tlsCertFile === "" ? "http" : "https";
  return urlOfHost(scheme, settings.host, portOf(settings, name));
}

/** Returns the port that a module listens on. */
export function portOf(settings: CommonSettings, name: ModuleName): number {
  return settings[`${name}Port`];
}

/** Returns the addresses of the replicas of a service that does not run in this process. */
export function urlsOf(settings: CommonSettings, name: ServiceName): readonly string[] {
  return settings[`${name}Url`];
}
