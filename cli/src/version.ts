import { readFileSync } from "node:fs";

/** Returns the version that the package's manifest states. */
export function version(): string {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** `depute version`. */
export async function printVersion(): Promise<void> {
  console.log(`depute ${version()}`);
}
