/** `npm run fix-lock`, after every change of package-lock.json: adds entries that npm may have omitted. Idempotent. */
import { readFileSync, writeFileSync } from "node:fs";
import { type Lock, missingPlatforms, withPlatforms } from "./lock.ts";

const FILE = "package-lock.json";

const lock = JSON.parse(readFileSync(FILE, "utf8")) as Lock;
const missing = missingPlatforms(lock);
if (missing.length > 0) writeFileSync(FILE, `${JSON.stringify(withPlatforms(lock), null, 2)}\n`);
console.log(
  missing.length > 0 ? `added ${missing.map(({ name }) => name).join(", ")}` : "nothing is missing",
);
