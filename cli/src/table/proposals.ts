import type { Argument, Column, Command, Parameter } from "./command.ts";
import { arg, document, oneOf, text } from "./parameters.ts";

const COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["STATE", "state", "enum:PROPOSAL_STATE_"],
  ["ABOUT", "organizationProof.organization|authorityGrant.authority|manifest.agentId"],
  ["FOR", "organizationProof.principal|authorityGrant.principal|manifest.version"],
  ["AGE", "createTime", "age"],
  ["BY", "decidedBy"],
  ["REASON", "reason"],
];
const WIDE: readonly Column[] = [
  ["PROPOSER", "proposer"],
  ["EXPIRES", "expireTime", "time"],
  ["JUSTIFICATION", "justification"],
];
const STATES = ["pending", "granted", "rejected", "expired", "withdrawn", "failed"];
const PROPOSAL = arg("PROPOSAL", "proposalId", "id of the proposal, and of its review");
const proposal = { item: "proposal", columns: COLUMNS, wide: WIDE };
const JUSTIFICATION: Parameter = {
  ...text("justification", "why the grant is needed, for the reviewers"),
  required: true,
};

function principal(field: string): Argument {
  return {
    ...arg("PRINCIPAL", field, "key or name of the principal; the caller if absent"),
    required: false,
  };
}

/** Commands that propose grants. Operators decide proposals with `depute reviews decide`. */
export const PROPOSALS: readonly Command[] = [
  {
    path: "proposals organization",
    summary: "Proposes that a principal acts for an organization",
    details: "An operator decides the review with the proposal's id: depute reviews decide.",
    remote: true,
    args: [
      arg("ORGANIZATION", "organizationProof.organization", "name of the organization"),
      principal("organizationProof.principal"),
    ],
    flags: { justification: JUSTIFICATION },
    example: "depute proposals organization initech ada --justification 'she maintains its agents'",
    call: { service: "proposals", method: "createProposal", shown: proposal },
  },
  {
    path: "proposals authority",
    summary: "Proposes that a principal holds an authority of agents' URIs",
    remote: true,
    args: [
      arg("AUTHORITY", "authorityGrant.authority", "host name in agents' URIs, such as example.com"),
      principal("authorityGrant.principal"),
    ],
    flags: { justification: JUSTIFICATION },
    example: "depute proposals authority example.com $KEY --justification 'our agents move there'",
    notRun: "needs the key of a principal",
    call: { service: "proposals", method: "createProposal", shown: proposal },
  },
  {
    path: "proposals manifest",
    summary: "Proposes a manifest that widens an agent's bounds",
    remote: true,
    args: [arg("AGENT", "manifest.agentId", "id of the agent")],
    flags: {
      ...document("manifest.manifest", "members of cap.v1.AgentManifest"),
      version: text("manifest.version", "name of the record's new version"),
      justification: JUSTIFICATION,
    },
    example:
      "depute proposals manifest clerk --file @manifest.json --version 1.2.0 --justification 'it asks echo, too'",
    notRun: "needs the named file",
    call: { service: "proposals", method: "createProposal", shown: proposal },
  },
  {
    path: "proposals list",
    summary: "Lists proposals: the caller's, or for operators all",
    remote: true,
    flags: {
      state: oneOf("state", "PROPOSAL_STATE_", STATES, "proposals in this state"),
      proposer: text("proposer", "proposals of this principal"),
    },
    example: "depute proposals list --state pending",
    call: {
      service: "proposals",
      method: "listProposals",
      list: true,
      shown: { item: "proposals", columns: COLUMNS, wide: WIDE },
    },
  },
  {
    path: "proposals describe",
    summary: "Shows a proposal",
    remote: true,
    args: [PROPOSAL],
    example: "depute proposals describe $PROPOSAL",
    notRun: "needs the id of a proposal",
    call: { service: "proposals", method: "getProposal", describe: true, shown: proposal },
  },
  {
    path: "proposals withdraw",
    summary: "Withdraws a pending proposal of the caller",
    remote: true,
    args: [PROPOSAL],
    flags: { reason: text("reason", "why") },
    example: "depute proposals withdraw $PROPOSAL",
    notRun: "needs the id of a proposal",
    call: { service: "proposals", method: "withdrawProposal", shown: proposal },
  },
];
