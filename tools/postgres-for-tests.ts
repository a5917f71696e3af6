import { postgresForTests } from "@depute/store/testing";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

/** Starts the database that the services' tests run on a second time, and stops it after them. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const postgres = await postgresForTests();
  if (postgres === undefined) throw new Error("there is no Postgres");
  provide("postgresUrl", postgres.url);
  return () => postgres.stop();
}
