import type { PurgeRule } from "@depute/core";

/**
 * The rules by which a purge of an organization handles the verifier's tables. docs/operations.md shows these rules.
 */
export const ORGANIZATION_DATA: readonly PurgeRule[] = [
  {
    kind: "contracts",
    tables: ["contracts", "sub_contracts"],
    owned: "its contracts and their places among sub-contracts",
    deletes: "some",
    remains: "a contract stays while a sub-contract or an unreported attestation rests on it: purge again",
  },
  {
    kind: "attestations",
    tables: ["attestations", "trust_outbox"],
    owned: "attestations under its contracts, by any signer",
    deletes: "some",
    remains: "an attestation stays until the registry has its outcome: purge again",
  },
  {
    kind: "judgements",
    tables: ["judgements", "judge_charges", "judge_claims"],
    owned: "judgements and charges under its contracts",
    deletes: "all",
    remains: "",
  },
  {
    kind: "reviews",
    tables: ["reviews", "review_readers", "review_changes", "review_inquiries"],
    owned: "its reviews with content, inquiries and changes",
    deletes: "all",
    remains: "",
  },
  {
    kind: "verification results",
    tables: ["verification_results", "trust_results_outbox"],
    owned: "its verification results",
    deletes: "some",
    remains: "a result stays until the registry has it: purge again",
  },
  {
    kind: "artifacts",
    tables: ["artifacts", "artifact_owners"],
    owned: "artifacts that it stored first; counts of its principals shrink",
    deletes: "all",
    remains: "",
  },
  {
    kind: "pending completions",
    tables: ["pending_completions"],
    owned: "attestations under its contracts that the tasks or tokens service has not answered",
    deletes: "none",
    remains: "until that service answers; without the contract the attestation is then dropped",
  },
  {
    kind: "verifier answers",
    tables: ["requests"],
    owned: "ids of contracts and attestations that repeated requests get",
    deletes: "none",
    remains: "for a day after which a later call drops them",
  },
  {
    kind: "transparency log",
    tables: ["log_entries", "log_nodes", "log_state"],
    owned: "digests of its attestations, results and days of the audit log",
    deletes: "none",
    remains: "for ever: signed heads of the Merkle tree cover them",
  },
  {
    kind: "copies of revocations",
    tables: ["revocations"],
    owned: "revocations by its keys",
    deletes: "none",
    remains: "they must keep denying",
  },
  {
    kind: "purged ids of the verifier",
    tables: ["purged_ids"],
    owned: "SHA-256 digests of the ids of its contracts, attestations, results and finally verified receipts",
    deletes: "none",
    remains:
      "for ever: a digest keeps another document from taking the id, and a receipt from a second verdict",
  },
  {
    kind: "records of witnessed platforms",
    tables: ["witnessed_platforms"],
    owned: "",
    deletes: "none",
    remains: "",
  },
  {
    kind: "state of the verifier",
    tables: ["cursors", "review_change_floor"],
    owned: "",
    deletes: "none",
    remains: "",
  },
];
