import { inject } from "vitest";

/** Every service that these tests start keeps what it has in the database. */
process.env.DEPUTE_POSTGRES_URL = inject("postgresUrl");
