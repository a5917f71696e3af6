/**
 * `npm run generate:clients -- go out/`: generates a client from the bundle in dist/ with local plugins. For Rust it
 * writes a crate that generates its code in each build.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CLIENT_LANGUAGES, type ClientLanguage } from "./client-languages.ts";
import { writeRustCrate } from "./rust-crate.ts";

const IMAGE = "dist/depute.binpb";

function generate(out: string, language: ClientLanguage): void {
  const { template, plugins, folders, fromLibraries, files = {} } = language;
  if (!existsSync(IMAGE)) throw new Error(`${IMAGE} does not exist; run: npm run bundle`);
  const path = [process.env.PATH, ...(folders === undefined ? [] : folders())].join(delimiter);
  const options = { env: { ...process.env, PATH: path }, stdio: "inherit" } as const;
  const missing = Object.entries(plugins)
    .filter(([plugin]) => spawnSync("which", [plugin], { env: options.env }).status !== 0)
    .map(([plugin, install]) => `${plugin} is not on the PATH; run: ${install.join(" ")}`);
  if (missing.length > 0) throw new Error(missing.join("\n"));
  const excluded = fromLibraries.flatMap((folder) => ["--exclude-path", folder]);
  execFileSync("buf", ["generate", IMAGE, "--template", template, "--output", out, ...excluded], options);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(out, file), content);
}

const [name = "", out] = process.argv.slice(2);
const language = CLIENT_LANGUAGES[name];
const RUST = "rust";
try {
  if (out === undefined || (language === undefined && name !== RUST)) {
    const names = [...Object.keys(CLIENT_LANGUAGES), RUST].join(", ");
    throw new Error(`give a language (${names}) and a folder: npm run generate:clients -- go out/`);
  }
  if (language === undefined) writeRustCrate(out);
  else generate(out, language);
  console.log(`${name}: the client is in ${join(out, name)}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
