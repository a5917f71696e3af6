import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

interface ThirdParty {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/**
 * Returns a document with the name, the version and the licence's text of each package of some modules.
 *
 * @param modules absolute paths of files in `node_modules`
 * @throws Error for a package that states no licence
 */
export function thirdPartyNotices(modules: readonly string[]): string {
  const folders = [...new Set(modules.map(packageOf))];
  const parts = folders.map((folder) => {
    const { name, version, license } = manifestIn(folder) as ThirdParty;
    if (typeof license !== "string")
      throw new Error(`${name} ${version} states no licence in its package.json`);
    return { title: `${name} ${version}`, license, texts: licencesIn(folder) };
  });
  const order = (title: string, other: string) => (title < other ? -1 : 1);
  const sections = parts
    .sort((one, two) => order(one.title, two.title))
    .map(({ title, license, texts }) =>
      [
        `## ${title}`,
        `Licence: ${license}`,
        ...texts.map((text) => `\`\`\`text\n${text.trim()}\n\`\`\``),
      ].join("\n\n"),
    );
  return `# Third-party notices\n\nThe files of this package contain code of these packages.\n\n${sections.join("\n\n")}\n`;
}

/** Returns the folder of the package that contains a file. */
function packageOf(file: string): string {
  let folder = dirname(file);
  // A package may have further manifests without a version, which only state the kind of its modules.
  while (manifestIn(folder)?.version === undefined) folder = dirname(folder);
  return folder;
}

function manifestIn(folder: string): Partial<ThirdParty> | undefined {
  const file = join(folder, "package.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Partial<ThirdParty>) : undefined;
}

/** Returns the texts of a package's licence and notice files. */
function licencesIn(folder: string): string[] {
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  return files.sort().map((file) => readFileSync(join(folder, file), "utf8"));
}
