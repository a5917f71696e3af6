/**
 * `npm run record-schemas -- v1.1`: records every store's current schema as the schema of a release. Recorded schemas
 * never change.
 */
import { CURRENT } from "../tests/schemas/current.ts";
import { record } from "../tests/schemas/releases.ts";

const release = process.argv[2] ?? "";
if (!/^v\d+(\.\d+)*$/.test(release)) {
  console.error("name the release: npm run record-schemas -- v1.1");
  process.exit(2);
}
for (const [store, schema] of Object.entries(CURRENT)) record(release, store, schema);
console.log(
  `recorded the schemas of ${Object.keys(CURRENT).join(", ")} in tests/schemas/releases/${release}`,
);
