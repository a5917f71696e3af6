import type { Argument, Command } from "./command.ts";

const NAME: Argument = { name: "NAME", type: "string", required: true, help: "name of the context" };
const SERVICES = ["tokens", "verifier", "registry", "tasks", "gateway"] as const;

/** Commands that run or check the platform, commands for contexts, and tools that need no platform. */
export const LOCAL: readonly Command[] = [
  {
    path: "start",
    group: "platform",
    summary: "Runs the whole platform in one process",
    example: "depute start",
    notRun: "runs until it is stopped",
    ownWords: "start",
  },
  {
    path: "serve",
    group: "platform",
    summary: "Runs one service",
    args: [{ name: "SERVICE", type: "enum", values: SERVICES, required: true, help: "the service" }],
    example: "depute serve registry",
    notRun: "runs until it is stopped",
    ownWords: "serveNamed",
  },
  {
    path: "cluster",
    group: "platform",
    summary: "Runs the services in processes of their own, with Redis, and replicas on Postgres",
    details:
      "It starts the Redis and the Postgres of the machine unless their addresses are set. SIGHUP restarts one process after the other.",
    example: "depute cluster --replicas 3",
    notRun: "runs until it is stopped",
    ownWords: "cluster",
  },
  {
    path: "doctor",
    group: "platform",
    summary: "Checks the settings of a deployment by the hardening list",
    details: "It takes the flags and variables of `depute start`. Exit code 1: a check failed.",
    example: "depute doctor --auth required",
    notRun: "fails without the settings of a deployment",
    ownWords: "doctor",
  },
  {
    path: "config check",
    summary: "Checks the settings that the platform would get, and starts nothing",
    details:
      "It takes the flags and variables of `depute start`, and the file that --config-file names. It names file, line, setting and reason of each invalid setting, and `DEPUTE_` variables that no setting has. Exit code 1: a setting is invalid.",
    example: "depute config check",
    ownWords: "checkConfig",
  },
  {
    path: "config show",
    summary: "Shows the settings that the platform would get, with the source of each",
    details:
      "The output is a file of settings. Secrets are masked. Settings that have their defaults are left out without --all.",
    example: "depute config show --max-deadline 10m",
    ownWords: "showConfig",
  },
  {
    path: "config schema",
    summary: "Prints the JSON Schema of the file of settings",
    example: "depute config schema > settings.schema.json",
    program: "printConfigSchema",
  },
  {
    path: "backup",
    group: "platform",
    summary: "Copies the records of a data folder, also while the platform runs",
    details:
      "All files show one instant. A manifest has their digests, and names keys and settings. It takes the settings of `depute start`, and `--to`, `--keys-to`, `--keys`, `--keys-passphrase-file`, `--keys-recipient-file`. SQLite only.",
    example: "depute backup --to backup-1 --keys --keys-passphrase-file passphrase",
    notRun: "needs the data folder of a platform",
    ownWords: "backup",
  },
  {
    path: "restore",
    group: "platform",
    summary: "Checks a backup, and copies it to a new data folder",
    details:
      "It takes the settings of `depute start`, and `--from`, `--keys-from`, `--keys-passphrase-file`, `--keys-identity-file`. SQLite only.",
    example: "depute restore --from backup-1 --keys-passphrase-file passphrase --data-dir data",
    notRun: "needs a backup of a platform",
    ownWords: "restore",
  },
  {
    path: "keys rotate-master",
    summary: "Seals the platform's secrets with a new master key",
    details:
      "The platform must be stopped. A run after an interruption continues. It takes the settings of `depute start`, and `--new-master-key-file`.",
    example: "depute keys rotate-master --data-dir data",
    notRun: "needs the data folder of a stopped platform",
    ownWords: "rotateMaster",
  },
  {
    path: "upgrade",
    group: "platform",
    summary: "Shows the migrations that the next start of this version would run",
    details:
      "It takes the settings of `depute start`, and `--check`. It changes nothing, and another version may run. Exit code 1: this version cannot open a store.",
    example: "depute upgrade --check",
    ownWords: "upgrade",
  },
  {
    path: "mcp",
    group: "tools",
    summary: "Serves the MCP server of a running platform over stdio, for hosts without HTTP",
    details:
      "With SERVER it serves a server behind the platform's proxy. It starts no platform, and uses the credentials of the context or of the flags.",
    args: [
      { name: "SERVER", type: "string", help: "name of a server behind the proxy; absent for Depute itself" },
    ],
    example: "depute mcp",
    notRun: "runs until its input ends",
    remote: true,
    program: "serveMcp",
  },
  {
    path: "mcp-proxy",
    group: "tools",
    summary: "Serves an MCP server over stdio, and requires authority for its tools",
    rest: "COMMAND ARGUMENTS",
    example: "depute mcp-proxy --config map.json -- my-server",
    notRun: "runs until it is stopped",
    ownWords: "mcpProxy",
  },
  {
    path: "mcp-map",
    group: "tools",
    summary: "Drafts a tool map from the tools that an MCP server lists",
    rest: "COMMAND ARGUMENTS",
    example: "depute mcp-map -- my-server",
    notRun: "needs an MCP server",
    ownWords: "mcpMap",
  },
  {
    path: "verify-transcript",
    group: "tools",
    summary: "Verifies the transcript of an ASP session, offline",
    details: "Exit codes: 0 sealed and valid, 1 altered, 2 wrong usage, 3 consistent but unsealed.",
    args: [{ name: "FILE", type: "file", required: true, help: "the transcript" }],
    example: "depute verify-transcript transcript.json --trust keys.json",
    notRun: "needs a transcript",
    ownWords: "verifyTranscriptFile",
  },
  {
    path: "verify-authority",
    group: "tools",
    summary: "Verifies a bundle of `depute explain --bundle`, offline",
    details: "Exit codes: 0 valid, 1 not valid, 2 wrong usage.",
    args: [{ name: "FILE", type: "file", required: true, help: "the bundle" }],
    flags: {
      root: {
        type: "string",
        repeated: true,
        required: true,
        help: "a trusted root, `principal` of GetIssuer; repeatable",
      },
      succession: {
        type: "file",
        help: "output of `depute keys roots -o json`: trust the roots that follow a trusted root too",
      },
      log: {
        type: "string",
        repeated: true,
        help: "a trusted transparency log, for bundles with an attestation; repeatable",
      },
    },
    example: "depute verify-authority bundle.json --root $ROOT",
    notRun: "needs the bundle of an explanation",
    program: "verifyAuthority",
  },
  {
    path: "verify-audit-proof",
    group: "tools",
    summary: "Verifies a proof of `depute audit prove`, offline",
    details: "Prints the day and the record. Exit codes: 0 valid, 1 not valid, 2 wrong usage.",
    args: [{ name: "FILE", type: "file", required: true, help: "the proof" }],
    flags: {
      log: {
        type: "string",
        repeated: true,
        required: true,
        help: "a trusted transparency log, `log` of GetLogHead; repeatable",
      },
    },
    example: "depute verify-audit-proof proof.json --log $LOG",
    notRun: "needs a proof of an audit record",
    program: "verifyAuditProof",
  },
  {
    path: "certs create",
    group: "tools",
    summary: "Creates certificates for development, and prints the settings that use them",
    details:
      "The folder gets ca.pem, server.pem, server.key, client.pem and client.key. The key of the authority is not stored.",
    args: [{ name: "DIR", type: "file", required: true, help: "folder of the new files" }],
    flags: {
      host: {
        type: "string",
        repeated: true,
        help: "DNS name or IP address of the server; repeatable; localhost, 127.0.0.1 and ::1 when absent",
      },
      client: {
        type: "string",
        default: "spiffe://depute.dev/client",
        help: "URI of the client in its certificate",
      },
      validity: { type: "duration", default: "30d", help: "time until the certificates expire" },
    },
    example: "depute certs create certs",
    program: "createCertificates",
  },
  {
    path: "context list",
    summary: "Lists contexts: platforms with the caller's credentials",
    example: "depute context list",
    program: "listContexts",
  },
  {
    path: "context use",
    summary: "Selects the context of later commands",
    args: [NAME],
    example: "depute context use local",
    program: "useContext",
  },
  {
    path: "context create",
    summary: "Creates a context, or replaces one",
    details: "The configuration names the files of credentials; it contains no secret.",
    args: [NAME],
    flags: {
      server: {
        type: "string",
        required: true,
        help: "address of the platform, e.g. https://depute.example.com",
      },
      "public-url": { type: "string", help: "the platform's public address, where it differs" },
      "ca-file": { type: "file", help: "PEM file with the authorities of the platform's certificate" },
      "client-cert-file": {
        type: "file",
        help: "PEM file with the caller's certificate, for platforms that ask for one",
      },
      "client-key-file": { type: "file", help: "PEM file with the certificate's key" },
      "key-file": { type: "file", help: "file with the caller's key: 32 bytes in base64url" },
      "token-file": { type: "file", help: "file with a DelegateOS token of the key's principal" },
      "secret-file": { type: "file", help: "file with a configured secret, sent as Bearer" },
    },
    example: "depute context create local --server http://127.0.0.1:8080",
    program: "createContext",
  },
  {
    path: "context delete",
    summary: "Deletes a context; files of credentials stay",
    args: [NAME],
    example: "depute context delete local",
    program: "deleteContext",
  },
  {
    path: "completion",
    group: "settings",
    summary: "Prints the completion of a shell",
    details:
      "bash: `source <(depute completion bash)`. zsh: `source <(depute completion zsh)` after compinit. fish: `depute completion fish | source`.",
    args: [
      { name: "SHELL", type: "enum", values: ["bash", "zsh", "fish"], required: true, help: "the shell" },
    ],
    example: "depute completion bash",
    program: "printCompletion",
  },
  {
    path: "complete",
    hidden: true,
    summary: "Prints the candidates for the last of the words after --",
    rest: "WORDS",
    program: "printCandidates",
  },
  {
    path: "reference",
    hidden: true,
    summary: "Prints docs/cli.md",
    program: "printReference",
  },
  {
    path: "version",
    group: "settings",
    summary: "Prints the version",
    example: "depute version",
    program: "printVersion",
  },
];
