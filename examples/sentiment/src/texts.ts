import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const MODULES = join(dirname(fileURLToPath(import.meta.url)), "../../../node_modules");

/**
 * Returns real prose from outside this project: paragraphs from the README files of the installed packages, in the
 * order of the packages' names.
 *
 * @throws Error when the installed packages have fewer than `count` paragraphs
 */
export function collectTexts(count: number): string[] {
  const texts = new Set<string>();
  for (const readme of readmeFiles()) {
    for (const paragraph of readFileSync(readme, "utf8").split(/\r?\n\s*\r?\n/)) {
      const text = paragraph.replace(/\s+/g, " ").trim();
      if (isProse(text)) texts.add(text);
      if (texts.size === count) return [...texts];
    }
  }
  throw new Error(`the installed packages' read-me files hold only ${texts.size} paragraphs, not ${count}`);
}

function* readmeFiles(): Generator<string> {
  for (const folder of packageFolders()) {
    const name = readdirSync(folder).find((file) => file.toLowerCase() === "readme.md");
    if (name !== undefined) yield join(folder, name);
  }
}

function* packageFolders(): Generator<string> {
  for (const entry of folders(MODULES)) {
    if (!entry.startsWith("@")) yield join(MODULES, entry);
    else for (const scoped of folders(join(MODULES, entry))) yield join(MODULES, entry, scoped);
  }
}

/** Lists the folders at a path. Links are skipped, because they lead to this project's own workspaces. */
function folders(path: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map((entry) => entry.name)
    .sort();
}

/** Whether a text looks like sentences, not like headings, lists, tables, code, badges or markup. */
function isProse(text: string): boolean {
  return text.length >= 60 && text.length <= 2_000 && /^[A-Z][a-z' ]/.test(text) && /[.!:?)]$/.test(text);
}
