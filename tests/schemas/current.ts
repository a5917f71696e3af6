import { migrations as registry } from "@depute/registry/schema";
import type { Migration } from "@depute/store";
import { migrations as tasks } from "@depute/tasks/schema";
import { migrations as tokens } from "@depute/tokens/schema";
import { migrations as verifier } from "@depute/verifier/schema";

/** The migrations of one store, by module. A store with a single list has the empty name as its module. */
export type Schema = Readonly<Record<string, readonly Migration[]>>;

/** The current schema of every store, as the migrations of the services make it. */
export const CURRENT: Readonly<Record<string, Schema>> = {
  registry: { "": registry },
  tasks,
  tokens: { "": tokens },
  verifier: { "": verifier },
};
