import { inject } from "vitest";

/** Every service that these tests start stores its data in the database. */
process.env.DEPUTE_POSTGRES_URL = inject("postgresUrl");
/**
 * Five kills are enough here, because a killed process behaves the same on both stores, except for the release of its
 * lock.
 */
process.env.DEPUTE_KILLS ??= "5";
