import type { Column, Command } from "./command.ts";
import { arg, text } from "./parameters.ts";

const PROOF_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["ORGANIZATION", "organization"],
  ["PRINCIPAL", "principal"],
  ["BY", "provenBy"],
  ["AGE", "createTime", "age"],
  ["REVOKED", "revokeTime", "age"],
];
const MEMBER_COLUMNS: readonly Column[] = [
  ["PRINCIPAL", "principal"],
  ["BY", "admittedBy"],
  ["AGE", "createTime", "age"],
];
const GRANT_COLUMNS: readonly Column[] = [
  ["AUTHORITY", "authority"],
  ["PRINCIPAL", "principal"],
  ["SOURCE", "source", "enum:AUTHORITY_SOURCE_"],
  ["BY", "grantedBy"],
  ["AGE", "createTime", "age"],
];
const ORGANIZATION = arg("ORGANIZATION", "organization", "name of the organization");
const PRINCIPAL = arg("PRINCIPAL", "principal", "key or name of the principal");
const AUTHORITY = arg("AUTHORITY", "authority", "host name in agents' URIs, such as example.com");
const proof = { item: "proof", columns: PROOF_COLUMNS };
const grant = { item: "grant", columns: GRANT_COLUMNS };

/** Commands for operators: about organizations, and about the authorities of agent URIs. */
export const GRANTS: readonly Command[] = [
  {
    path: "organizations list",
    summary: "Lists the proven organizations of principals",
    remote: true,
    flags: {
      organization: text("organization", "proofs of this organization"),
      principal: text("principal", "proofs of this principal"),
      all: { type: "bool", field: "includeRevoked", help: "also proofs that have ended" },
    },
    example: "depute organizations list --all",
    call: {
      service: "organizations",
      method: "listOrganizationProofs",
      list: true,
      shown: { item: "proofs", columns: PROOF_COLUMNS },
    },
  },
  {
    path: "organizations prove",
    summary: "Records that a principal acts for an organization",
    remote: true,
    args: [ORGANIZATION, PRINCIPAL],
    example: "depute organizations prove acme ada",
    call: { service: "organizations", method: "createOrganizationProof", shown: proof },
  },
  {
    path: "organizations revoke",
    summary: "Ends a proof, and the memberships that rest on it",
    remote: true,
    args: [arg("PROOF", "proofId", "id of the proof")],
    example: "depute organizations revoke 019f6bf6-7a3c-7d5e-9b1a-2f3e4d5c6b7a",
    notRun: "needs the id of a proof",
    call: { service: "organizations", method: "revokeOrganizationProof", shown: proof },
  },
  {
    path: "organizations members",
    summary: "Lists the members of an organization",
    remote: true,
    args: [ORGANIZATION],
    example: "depute organizations members acme",
    call: {
      service: "organizations",
      method: "listMembers",
      list: true,
      shown: { item: "members", columns: MEMBER_COLUMNS },
    },
  },
  {
    path: "organizations purge",
    summary: "Deletes an organization's data in all services, and cancels its tasks",
    details:
      "It calls the tasks, verifier, tokens and registry services until none has more to delete. A repeated run deletes what is left. docs/operations.md says what remains, and why.",
    remote: true,
    args: [ORGANIZATION],
    flags: {
      reason: text("reason", "reason of the cancellation, for workers"),
      max: {
        type: "int",
        field: "maxCount",
        help: "largest number of records that one call deletes, of each kind in the tasks service; default 100",
      },
    },
    example: "depute organizations purge acme --reason 'on request'",
    program: "purgeOrganization",
  },
  {
    path: "authorities list",
    summary: "Lists the principals that hold an authority of agents' URIs",
    remote: true,
    args: [AUTHORITY],
    example: "depute authorities list example.com",
    call: {
      service: "authorities",
      method: "listAuthorityGrants",
      list: true,
      shown: { item: "grants", columns: GRANT_COLUMNS },
    },
  },
  {
    path: "authorities grant",
    summary: "Lets a principal register agents below an authority",
    remote: true,
    args: [AUTHORITY, PRINCIPAL],
    example: "depute authorities grant example.com $KEY",
    notRun: "needs the role operator",
    call: { service: "authorities", method: "createAuthorityGrant", shown: grant },
  },
  {
    path: "authorities revoke",
    summary: "Revokes the grant of a principal",
    remote: true,
    args: [AUTHORITY, PRINCIPAL],
    example: "depute authorities revoke example.com $KEY",
    notRun: "needs the role operator",
    call: { service: "authorities", method: "deleteAuthorityGrant", shown: { item: "", columns: [] } },
  },
];
