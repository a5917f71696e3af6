import type { SealedTable } from "@depute/service";
import { contextOfJwtKey } from "./jwt-keys.ts";
import { contextOfKeptKey } from "./key-store.ts";
import { contextOfRootKey } from "./root-keys.ts";
import { contextOfSession } from "./shared-sessions.ts";

/** The tables of the tokens service whose secrets the master key seals. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    table: "kept_keys",
    key: "id",
    columns: ["owner", "principal"],
    contextOf: ({ id = "", owner = "", principal = "" }) => contextOfKeptKey({ id, owner, principal }),
  },
  { table: "jwt_keys", key: "kid", columns: [], contextOf: ({ kid = "" }) => contextOfJwtKey(kid) },
  {
    table: "root_key_secrets",
    key: "principal",
    columns: [],
    contextOf: ({ principal = "" }) => contextOfRootKey(principal),
  },
  {
    table: "holder_sessions",
    key: "id",
    columns: ["terms"],
    contextOf: ({ terms = "" }) => contextOfSession(terms),
  },
];
