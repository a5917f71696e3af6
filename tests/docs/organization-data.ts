import type { PurgeRule } from "@depute/core";
import { ORGANIZATION_DATA as registry } from "@depute/registry/organization-data";
import { migrations as registryMigrations } from "@depute/registry/schema";
import type { Migrations } from "@depute/store";
import { ORGANIZATION_DATA as tasks } from "@depute/tasks/organization-data";
import { migrations as tasksMigrations } from "@depute/tasks/schema";
import { ORGANIZATION_DATA as tokens } from "@depute/tokens/organization-data";
import { migrations as tokensMigrations } from "@depute/tokens/schema";
import { ORGANIZATION_DATA as verifier } from "@depute/verifier/organization-data";
import { migrations as verifierMigrations } from "@depute/verifier/schema";

/** The services that keep records of organizations, with their rules and tables. */
export const PURGED_SERVICES: readonly {
  readonly service: string;
  readonly rules: readonly PurgeRule[];
  readonly migrations: Migrations;
}[] = [
  { service: "tasks", rules: tasks, migrations: tasksMigrations },
  { service: "verifier", rules: verifier, migrations: verifierMigrations },
  { service: "tokens", rules: tokens, migrations: tokensMigrations },
  { service: "registry", rules: registry, migrations: registryMigrations },
];

const DELETED = { all: "all", some: "what does not remain", none: "none" } as const;

/** Returns the table of docs/operations.md: what a purge does with the records of an organization. */
export function organizationDataTable(): string {
  const rows = PURGED_SERVICES.flatMap(({ service, rules }) =>
    rules
      .filter(({ owned }) => owned !== "")
      .map(({ kind, tables, owned, deletes, remains }) =>
        row(`${service}: ${kind}`, owned, DELETED[deletes], remains, tables.map((name) => `\`${name}\``).join(", ")),
      ),
  );
  const head = row("records", "what is the organization's", "deleted", "remains, and why", "tables");
  return [head, row("---", "---", "---", "---", "---").replaceAll(" ", ""), ...rows].join("\n");
}

function row(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |");
}
