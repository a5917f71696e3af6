/** `npm run vectors`: writes vectors/*.json from the project's own packages. See vectors/README.md. */
import { writeFileSync } from "node:fs";
import { FAMILIES, fileText } from "./vectors/families.ts";

for (const [name, vectors] of Object.entries(FAMILIES)) {
  const file = vectors();
  writeFileSync(`vectors/${name}.json`, fileText(file));
  console.log(`vectors/${name}.json: ${file.cases.length} cases`);
}
