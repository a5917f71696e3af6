import { postgresForTests } from "@depute/store/testing";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

/** Starts the database for the second run of the services' tests; the returned function stops it after them. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const postgres = await postgresForTests();
  if (postgres === undefined) throw new Error("there is no Postgres");
  provide("postgresUrl", postgres.url);
  return () => postgres.stop();
}
