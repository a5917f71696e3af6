import type { Migrations } from "@depute/store";
import { CORE_MIGRATIONS } from "./core/store/migrations.ts";
import { EXECUTION_MIGRATIONS } from "./executions/store/migrations.ts";
import { MESSAGE_MIGRATIONS } from "./messages/migrations.ts";
import { PUSH_MIGRATIONS } from "./push/store/migrations.ts";
import { REVIEW_MIGRATIONS } from "./reviews/migrations.ts";

/** The tables of the store of the tasks, by module. Sessions have a store of their own. */
export const TABLES = {
  core: CORE_MIGRATIONS,
  reviews: REVIEW_MIGRATIONS,
  executions: EXECUTION_MIGRATIONS,
  push: PUSH_MIGRATIONS,
  messages: MESSAGE_MIGRATIONS,
} satisfies Migrations;
