import type { Column, Command, Flags } from "./command.ts";
import { arg, oneOf, text } from "./parameters.ts";

const KEY_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["STATE", "state", "enum:KEY_STATE_"],
  ["PRINCIPAL", "principal"],
  ["AGENT", "agentId"],
  ["AGE", "createTime", "age"],
];
const KEY_WIDE: readonly Column[] = [
  ["OWNER", "owner"],
  ["SUCCESSOR", "successorId"],
];
const key = { item: "key", columns: KEY_COLUMNS, wide: KEY_WIDE };
const ROOT_KEY_COLUMNS: readonly Column[] = [
  ["PRINCIPAL", "principal"],
  ["STATE", "state", "enum:ROOT_KEY_STATE_"],
  ["SIGNS-SINCE", "createTime", "time"],
  ["RETIRES", "retireTime", "time"],
];
const ROOT_KEY_WIDE: readonly Column[] = [["FOLLOWS", "succession.earlier"]];
const rootKey = { item: "key", columns: ROOT_KEY_COLUMNS, wide: ROOT_KEY_WIDE };

const KEY = arg("KEY", "keyId", "id of the key");

const DELEGATION_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["STATUS", "status", "enum:DELEGATION_STATUS_"],
  ["DEPTH", "depth", "number"],
  ["DELEGATOR", "delegator"],
  ["DELEGATEE", "delegatee"],
  ["EXPIRES", "expireTime", "time"],
];
const DELEGATION_WIDE: readonly Column[] = [
  ["CONTRACT", "contractId"],
  ["REVOCATION-ID", "revocationId"],
];

const REVOCATION_COLUMNS: readonly Column[] = [
  ["SEQUENCE", "sequence"],
  ["TIME", "recordTime", "time"],
  ["SCOPE", "entry.scope", "enum:REVOCATION_SCOPE_"],
  ["REVOKED", "entry.revocationId|key.key"],
  ["BY", "entry.revokedBy|key.revokedBy"],
];

const AUDIT_COLUMNS: readonly Column[] = [
  ["SEQUENCE", "sequence"],
  ["TIME", "time", "time"],
  ["CALLER", "caller"],
  ["KIND", "kind"],
  ["RESOURCE", "resource"],
  ["DECISION", "decision", "enum:AUDIT_DECISION_"],
  ["REASON", "reason"],
];
const AUDIT_WIDE: readonly Column[] = [
  ["SOURCE", "source"],
  ["RPC", "rpc"],
  ["WIRE", "wire"],
  ["CREDENTIAL", "credential", "enum:AUDIT_CREDENTIAL_"],
  ["ADDRESS", "address"],
  ["PRINCIPAL", "principal"],
  ["ON-BEHALF-OF", "onBehalfOf"],
  ["REQUEST", "requestId"],
];
const audit = { columns: AUDIT_COLUMNS, wide: AUDIT_WIDE };
const AUDIT_FLAGS: Flags = {
  after: { type: "int", field: "afterSequence", help: "records after this number" },
  caller: text("filter.caller", "records of this caller"),
  principal: text("filter.principal", "records about the authority of this principal"),
  organization: text("filter.organization", "records of this organization"),
  kind: text("filter.kind", "records of this kind, such as mint"),
  decision: oneOf("filter.decision", "AUDIT_DECISION_", ["allowed", "denied"], "records of this outcome"),
  block: text("filter.revocationId", "records about tokens with this block, by its revocation id"),
  resource: text("filter.resource", "records about this resource, such as tasks/t-1"),
  rpc: text("filter.rpc", "records of this method"),
  request: text("filter.requestId", "records of this request"),
  source: text("filter.source", "decisions of this service"),
  from: { type: "time", field: "filter.startTime", help: "decided at this time or later" },
  before: { type: "time", field: "filter.endTime", help: "decided before this time" },
};

export const AUTHORITY: readonly Command[] = [
  {
    path: "audit list",
    summary: "Lists decisions on authority, oldest first",
    remote: true,
    flags: AUDIT_FLAGS,
    example: "depute audit list --decision denied -o wide",
    call: {
      service: "audit",
      method: "listAuditRecords",
      list: true,
      shown: { ...audit, item: "records" },
      stream: { method: "watchAuditRecords", item: "record", request: { sendStart: true } },
    },
  },
  {
    path: "audit watch",
    summary: "Follows decisions on authority until interrupted",
    details: "It starts with the oldest record, or after the number of --after.",
    remote: true,
    flags: AUDIT_FLAGS,
    example: "depute audit watch --decision denied -o json",
    notRun: "runs until interrupted",
    call: {
      service: "audit",
      method: "watchAuditRecords",
      shown: { ...audit, item: "record" },
      stream: { method: "watchAuditRecords", item: "record", request: { sendStart: true } },
    },
  },
  {
    path: "audit export",
    summary: "Prints decisions on authority as lines of JSON, up to the newest",
    details:
      "Each line is the canonical JSON of one record. Without filters, `depute audit verify` can check the lines.",
    remote: true,
    flags: AUDIT_FLAGS,
    example: "depute audit export > audit.jsonl",
    program: "exportAudit",
  },
  {
    path: "audit verify",
    summary: "Checks the audit log by the seals of its days, and the seals by the transparency log",
    details:
      "It prints a line for each sealed day: valid, incomplete (records were deleted or not exported) or altered. Exits with 1 when a day is altered, or the proof of its seal is wrong.",
    remote: true,
    flags: {
      file: {
        type: "file",
        help: "lines of depute audit export, in place of the platform's present records",
      },
    },
    example: "depute audit verify",
    program: "verifyAudit",
  },
  {
    path: "audit prove",
    summary: "Proves that a record belongs to the seal of its day, and the seal to the transparency log",
    details:
      "Prints the proof as a document. `depute verify-audit-proof` verifies it offline. The record's day must be over.",
    remote: true,
    args: [
      { name: "SEQUENCE", type: "int", field: "sequence", required: true, help: "sequence of the record" },
    ],
    example: "depute audit prove 17 > proof.json",
    notRun: "needs a record of a sealed day",
    program: "proveAudit",
  },
  {
    path: "tokens list",
    summary: "Lists the recorded delegations of tokens",
    remote: true,
    flags: {
      principal: text("principal", "delegations to or from this principal"),
      contract: text("contractId", "delegations of this contract"),
      status: oneOf(
        "status",
        "DELEGATION_STATUS_",
        ["active", "completed", "failed", "revoked"],
        "delegations in this status",
      ),
    },
    example: "depute tokens list --status active",
    call: {
      service: "delegations",
      method: "listDelegations",
      list: true,
      shown: { item: "delegations", columns: DELEGATION_COLUMNS, wide: DELEGATION_WIDE },
    },
  },
  {
    path: "tokens describe",
    summary: "Shows the recorded delegation of a token's block",
    remote: true,
    args: [arg("DELEGATION", "delegationId", "id of the delegation")],
    example: "depute tokens describe $DELEGATION",
    call: {
      service: "delegations",
      method: "getDelegation",
      describe: true,
      shown: { item: "delegation", columns: DELEGATION_COLUMNS, wide: DELEGATION_WIDE },
    },
  },
  {
    path: "tokens create",
    summary: "Has the platform's root sign a token",
    details: "Prints the token. `-o json` adds the ids of its delegation and revocation.",
    remote: true,
    flags: {
      delegatee: { ...text("delegatee", "principal of the holder"), required: true },
      capability: {
        type: "string",
        repeated: true,
        required: true,
        help: "granted capability, NAMESPACE:ACTION:RESOURCE; repeatable",
      },
      contract: text("contractId", "contract that the token serves; a new id when absent"),
      budget: { type: "int", field: "maxBudgetMicrocents", required: true, help: "most cost, in microcents" },
      depth: { type: "int", field: "maxChainDepth", default: "1", help: "how often it may be attenuated" },
      lifetime: { type: "duration", field: "lifetime", default: "10m", help: "at most 24 hours" },
    },
    example:
      "depute tokens create --delegatee $PRINCIPAL --capability web:search:** --budget 1000 > token.txt",
    program: "createToken",
  },
  {
    path: "tokens inspect",
    summary: "Draws the chain of a token, block by block, with the platform's verdict",
    details:
      "TOKEN is a token, @FILE, or - for standard input. With --offline the command does not call the platform. The proof of the holder is not part of the verdict.",
    remote: true,
    args: [{ name: "TOKEN", type: "string", required: true, help: "token, @FILE, or - for standard input" }],
    flags: { offline: { type: "bool", help: "draw the chain without a call to the platform" } },
    example: "depute tokens inspect @token.txt",
    program: "inspectToken",
  },
  {
    path: "tokens revoke",
    summary: "Revokes a token, or one block of it",
    details:
      "ID is the revocation id of a block, or a token as @FILE. The platform's root revokes what it signed. With --key-file and --token-file the key's holder signs the revocation; with --kept-key the platform signs with a kept key.",
    remote: true,
    args: [{ name: "ID", type: "string", required: true, help: "revocation id, or @FILE with a token" }],
    flags: {
      scope: {
        type: "enum",
        values: ["chain", "block"],
        default: "chain",
        help: "the block with all that follow, or the block alone",
      },
      "kept-key": { type: "string", help: "id of a kept key that signs the revocation" },
    },
    example: "depute tokens revoke @token.txt",
    program: "revokeToken",
  },
  {
    path: "tokens revocations",
    summary: "Lists the log of revocations",
    remote: true,
    flags: { after: { type: "int", field: "afterSequence", help: "entries after this number" } },
    example: "depute tokens revocations",
    call: {
      service: "revocations",
      method: "listRevocations",
      list: true,
      shown: { item: "revocations", columns: REVOCATION_COLUMNS, wide: [["HEAD", "head"]] },
      stream: { method: "watchRevocations", item: "revocation", request: { sendStart: true } },
    },
  },
  {
    path: "keys list",
    summary: "Lists the keys that the platform keeps for the caller",
    remote: true,
    example: "depute keys list",
    call: {
      service: "keys",
      method: "listKeys",
      list: true,
      shown: { item: "keys", columns: KEY_COLUMNS, wide: KEY_WIDE },
    },
  },
  {
    path: "keys describe",
    summary: "Shows a kept key",
    remote: true,
    args: [KEY],
    example: "depute keys describe $KEY",
    notRun: "needs a sealing secret in the platform's settings",
    call: { service: "keys", method: "getKey", describe: true, shown: key },
  },
  {
    path: "keys create",
    summary: "Has the platform create and keep a key",
    remote: true,
    flags: { agent: text("agentId", "agent that the key is for") },
    example: "depute keys create",
    notRun: "needs a sealing secret in the platform's settings",
    call: { service: "keys", method: "createKey", shown: key },
  },
  {
    path: "keys rotate",
    summary: "Replaces a kept key by a new one",
    remote: true,
    args: [KEY],
    example: "depute keys rotate $KEY",
    notRun: "needs a sealing secret in the platform's settings",
    call: { service: "keys", method: "rotateKey", shown: key },
  },
  {
    path: "keys revoke",
    summary: "Revokes a kept key, and every token that it signed or holds",
    remote: true,
    args: [KEY],
    flags: {
      "keep-before": {
        type: "time",
        field: "keepBefore",
        help: "what was signed before this time stays valid",
      },
    },
    example: "depute keys revoke $KEY",
    notRun: "needs a sealing secret in the platform's settings",
    call: { service: "keys", method: "revokeKeptKey", shown: key },
  },
  {
    path: "keys roots",
    summary: "Lists the platform's root keys, with their states and times",
    details:
      "The key that signs, the earlier keys whose tokens the platform still accepts, and the retired ones. `-o json` has the statements of succession, for `depute verify-authority --succession`.",
    remote: true,
    example: "depute keys roots",
    call: {
      service: "rootKeys",
      method: "listRootKeys",
      list: true,
      shown: { item: "keys", columns: ROOT_KEY_COLUMNS, wide: ROOT_KEY_WIDE },
    },
  },
  {
    path: "keys rotate-root",
    summary: "Creates a root key that signs tokens from now on, while the platform runs",
    details:
      "The platform accepts tokens of the earlier keys until the overlap ends. Clients that pin the root need the new key for new tokens. Only operators may call it.",
    remote: true,
    flags: {
      overlap: {
        type: "duration",
        field: "overlap",
        help: "time for which tokens of earlier keys stay valid, at most 90d; DEPUTE_ROOT_KEY_OVERLAP when absent",
      },
      "retire-now": {
        type: "bool",
        field: "retireNow",
        help: "deny all tokens of earlier keys at once, after a compromise",
      },
      "allow-older-replicas": {
        type: "bool",
        field: "allowOlderReplicas",
        help: "rotate although replicas of an earlier version run, which accept the first key alone",
      },
      "request-id": text(
        "requestId",
        "makes a repeated command return the first rotation; a new id when absent",
      ),
    },
    example: "depute keys rotate-root --overlap 1h",
    call: { service: "rootKeys", method: "rotateRootKey", shown: rootKey },
  },
  {
    path: "keys retire-root",
    summary: "Ends the overlap of an earlier root key at once, after a compromise",
    details: "The platform denies every token of the key. It cannot be undone. Only operators may call it.",
    remote: true,
    args: [arg("PRINCIPAL", "principal", "the root key, as in `depute keys roots`")],
    example: "depute keys retire-root $EARLIER_ROOT",
    notRun: "needs a root key in its overlap",
    call: { service: "rootKeys", method: "retireRootKey", shown: rootKey },
  },
  {
    path: "keys new",
    summary: "Creates a key in a file of this computer, and prints its principal",
    details: "The file gets the mode 0600. An existing file is not replaced.",
    args: [{ name: "FILE", type: "file", required: true, help: "file to create" }],
    example: "depute keys new other.key",
    program: "newKey",
  },
];
