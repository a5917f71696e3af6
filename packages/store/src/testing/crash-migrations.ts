import type { Migration } from "../migrations.ts";

export const CRASH_MIGRATIONS: readonly Migration[] = [
  {
    id: 1,
    name: "entries",
    sql: "CREATE TABLE entry (id INTEGER PRIMARY KEY, half INTEGER NOT NULL) STRICT",
  },
];
