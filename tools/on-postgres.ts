import { inject } from "vitest";

/** Every service that these tests start keeps what it has in the database. */
process.env.DEPUTE_POSTGRES_URL = inject("postgresUrl");
/** A killed process is the same on both; what differs is who lets go of its lock. */
process.env.DEPUTE_KILLS ??= "10";
