import type { Migration } from "@depute/store";

export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "contracts, attestations, request ids",
    sql: `
      CREATE TABLE contracts (
        id TEXT PRIMARY KEY,
        issuer TEXT NOT NULL,
        digest TEXT NOT NULL,
        document TEXT NOT NULL,
        create_time INTEGER NOT NULL
      );
      CREATE INDEX contracts_by_time ON contracts (create_time, id);
      CREATE INDEX contracts_by_issuer ON contracts (issuer, create_time, id);

      CREATE TABLE attestations (
        id TEXT PRIMARY KEY,
        contract_id TEXT NOT NULL REFERENCES contracts (id),
        principal TEXT NOT NULL,
        digest TEXT NOT NULL,
        document TEXT NOT NULL,
        record_time INTEGER NOT NULL
      );
      CREATE INDEX attestations_by_contract ON attestations (contract_id, record_time, id);

      CREATE TABLE requests (
        caller TEXT NOT NULL,
        request_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        attestation_id TEXT NOT NULL,
        create_time INTEGER NOT NULL,
        PRIMARY KEY (caller, request_id)
      );
      CREATE INDEX requests_by_time ON requests (create_time);
    `,
  },
];
