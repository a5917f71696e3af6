import type { PurgeRule } from "@depute/core";

/**
 * The rules by which a purge of an organization handles the tables of the tokens service. docs/operations.md shows
 * these rules.
 */
export const ORGANIZATION_DATA: readonly PurgeRule[] = [
  {
    kind: "kept keys",
    tables: ["kept_keys", "agent_key_changes"],
    owned: "its kept keys with their sealed secrets, and their unreported replacements",
    deletes: "all",
    remains: "",
  },
  {
    kind: "reservations",
    tables: ["reservations", "open_spend"],
    owned: "its reservations",
    deletes: "some",
    remains:
      "a held reservation stays until it is settled or expires, because a task may still settle it: purge again",
  },
  {
    kind: "delegations",
    tables: ["delegations", "delegation_blocks"],
    owned: "its delegations with the content of their blocks",
    deletes: "some",
    remains:
      "a completed or failed one stays until its token expires, to refuse a second end; one above another organization's stays as long as that one, to deny what is below it: purge again",
  },
  {
    kind: "blocks",
    tables: ["blocks"],
    owned: "ids, keys and expiry of the blocks of its tokens",
    deletes: "none",
    remains: "until their expiry and DEPUTE_DELEGATION_RETENTION: they show who may revoke",
  },
  {
    kind: "bindings",
    tables: ["block_bindings", "used_blocks"],
    owned: "audiences, tenants and single uses of the blocks of its tokens",
    deletes: "none",
    remains: "they keep narrowing the tokens that carry the blocks",
  },
  {
    kind: "spend",
    tables: ["spend"],
    owned: "totals of the blocks of its tokens",
    deletes: "none",
    remains: "until a week after the block's expiry: a total keeps limiting its block",
  },
  {
    kind: "revocations",
    tables: [...["revocations", "key_revocations", "pending_revocations"], ...["cascades", "key_sweeps"]],
    owned: "revocations by its keys, or of its blocks and keys",
    deletes: "none",
    remains:
      "they must keep denying. The content goes when the block expires; digests of the hash chain stay for ever",
  },
  {
    kind: "used proofs and sessions",
    tables: ["seen_proofs", "proof_horizon", "holder_sessions"],
    owned: "ids of proofs that its keys used, and their holder sessions",
    deletes: "none",
    remains: "for minutes, until their time is over: they refuse replays",
  },
  {
    kind: "mint requests",
    tables: ["mint_requests"],
    owned: "unsigned authorities of tokens that were minted for it",
    deletes: "none",
    remains: "for a day after which a later mint or purge drops them: they answer repeated requests",
  },
  {
    kind: "audit records",
    tables: ["audit", "audit_batches"],
    owned: "decisions on calls of its callers",
    deletes: "none",
    remains: "until DEPUTE_AUDIT_RETENTION: each record is in the hash chain, and the purge itself is one",
  },
  {
    kind: "audit heads",
    tables: ["audit_state", "audit_seals", "audit_nodes"],
    owned: "digests of the days with its records, and of the records themselves",
    deletes: "none",
    remains:
      "of days for ever: they prove that no record was changed. Of records while a record of their day stays: they prove the others",
  },
  {
    kind: "state of the tokens service",
    tables: ["peer_cursors", "jwt_keys", "root_keys", "root_key_secrets"],
    owned: "",
    deletes: "none",
    remains: "",
  },
];
