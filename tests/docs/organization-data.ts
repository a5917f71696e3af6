import type { PurgeRule } from "@depute/core";
import { ORGANIZATION_DATA as registry } from "@depute/registry/organization-data";
import { ORGANIZATION_DATA as tasks } from "@depute/tasks/organization-data";
import { ORGANIZATION_DATA as tokens } from "@depute/tokens/organization-data";
import { ORGANIZATION_DATA as verifier } from "@depute/verifier/organization-data";

/** The services that keep records of organizations, with their rules. */
export const PURGED_SERVICES: readonly {
  readonly service: "tasks" | "verifier" | "tokens" | "registry";
  readonly rules: readonly PurgeRule[];
}[] = [
  { service: "tasks", rules: tasks },
  { service: "verifier", rules: verifier },
  { service: "tokens", rules: tokens },
  { service: "registry", rules: registry },
];

const DELETED = { all: "all", some: "what does not remain", none: "none" } as const;

/** Returns the table of docs/operations.md: what a purge does with the records of an organization. */
export function organizationDataTable(): string {
  const rows = PURGED_SERVICES.flatMap(({ service, rules }) =>
    rules
      .filter(({ owned }) => owned !== "")
      .map(({ kind, tables, owned, deletes, remains }) =>
        row(
          `${service}: ${kind}`,
          owned,
          DELETED[deletes],
          remains,
          tables.map((name) => `\`${name}\``).join(", "),
        ),
      ),
  );
  const head = row("records", "what is the organization's", "deleted", "remains, and why", "tables");
  return [head, row("---", "---", "---", "---", "---").replaceAll(" ", ""), ...rows].join("\n");
}

function row(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |");
}
