/**
 * `npm run build`: compiles each workspace into its `dist/`. npm packs each `dist/` as it is. See
 * docs/adr/0014-built-packages.md.
 */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import {
  builtManifest,
  type Manifest,
  platformManifest,
  withCompiledImports,
  withoutOutwardLinks,
} from "./built-manifest.ts";
import { mergeModules } from "./merge-modules.ts";
import { thirdPartyNotices } from "./third-party-notices.ts";

const COMPILED = ".generated/build";
const BUNDLE = "dist";

/** The workspace of the package that contains the platform. */
const PLATFORM = "cli";

interface Root extends Manifest {
  readonly workspaces: readonly string[];
  /** The packages with Node.js for each operating system, on which the platform's package optionally depends. */
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const root = readJson<Root>("package.json");
// The console is not compiled here: `npm run build:console` writes it as files of the gateway.
const workspaces = globSync(root.workspaces.map((pattern) => `${pattern}/package.json`))
  .map(dirname)
  .filter((workspace) => workspace !== "console");

rmSync(COMPILED, { recursive: true, force: true });
execFileSync("tsc", ["-p", "tsconfig.build.json"], { stdio: "inherit" });
if (!existsSync(join(BUNDLE, "depute.binpb"))) {
  execFileSync(process.execPath, ["tools/bundle.ts"], { stdio: "inherit" });
}
if (!existsSync("gateway/console/index.html")) {
  execFileSync("vite", ["build", "console", "--logLevel", "warn"], { stdio: "inherit" });
}
for (const workspace of workspaces.sort()) build(workspace);
await mergePlatform(PLATFORM);

function build(workspace: string): void {
  const source = readJson<Manifest>(join(workspace, "package.json"));
  const out = join(workspace, "dist");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const file of globSync("**/*", { cwd: join(COMPILED, workspace) })) {
    const compiled = join(COMPILED, workspace, file);
    if (statSync(compiled).isFile())
      write(join(out, file), withCompiledImports(readFileSync(compiled, "utf8")));
  }
  if (source.publishConfig === undefined) copyAssets(workspace, out);
  if (source.name === "@depute/contracts") cpSync(BUNDLE, join(out, "bundle"), { recursive: true });
  const folders = readdirSync(out).sort();
  write(join(out, "package.json"), `${JSON.stringify(builtManifest(source, folders), null, 2)}\n`);
  writeTexts(workspace, out);
}

function writeTexts(workspace: string, out: string): void {
  cpSync("LICENSE", join(out, "LICENSE"));
  const readme = join(workspace, "README.md");
  if (existsSync(readme)) write(join(out, "README.md"), withoutOutwardLinks(readFileSync(readme, "utf8")));
}

/**
 * Replaces the compiled files of the platform's package by merged ones, which contain the workspaces and the packages
 * that they need. The files that a server reads lie as they do in the repository, with the package's folder in the
 * place of the workspace's.
 */
async function mergePlatform(workspace: string): Promise<void> {
  const out = join(workspace, "dist");
  const place = (path: string) => (path.startsWith(`${workspace}/`) ? relative(workspace, path) : path);
  rmSync(out, { recursive: true });
  const merged = await mergeModules({
    compiled: resolve(COMPILED),
    entry: join(workspace, "src/main.js"),
    out,
    place,
  });
  // These files are not merged, since an old Node.js has to load them.
  for (const file of ["src/bin.js", "src/node-version.js"])
    cpSync(join(COMPILED, workspace, file), join(out, file));
  const others = workspaces.filter((each) => each !== workspace && !each.startsWith("examples/"));
  const parts = others.map((each) => ({ each, manifest: readJson<Manifest>(join(each, "package.json")) }));
  for (const { each, manifest } of parts)
    if (manifest.publishConfig === undefined) copyAssets(each, join(out, each));
  cpSync(BUNDLE, join(out, "dist"), { recursive: true });
  write(join(out, "THIRD_PARTY_NOTICES.md"), thirdPartyNotices(merged.thirdParty));
  const source = readJson<Manifest>(join(workspace, "package.json"));
  const manifest = platformManifest(
    builtManifest(source, readdirSync(out).sort()),
    parts.map((part) => part.manifest),
    { imported: merged.imported, optional: root.optionalDependencies },
  );
  write(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  writeTexts(workspace, out);
}

/** Copies the files that a server reads beside its code. */
function copyAssets(workspace: string, out: string): void {
  const exclude = ["**/node_modules/**", "dist/**", "package.json", "*.md"];
  for (const file of globSync("**/*.{json,html,css,js,md,txt}", { cwd: workspace, exclude })) {
    mkdirSync(dirname(join(out, file)), { recursive: true });
    cpSync(join(workspace, file), join(out, file));
  }
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, "utf8")) as T;
}
