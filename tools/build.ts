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
import { dirname, join } from "node:path";
import {
  builtManifest,
  type Manifest,
  selfContained,
  withCompiledImports,
  withoutOutwardLinks,
} from "./built-manifest.ts";

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
containWorkspaces(PLATFORM);

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
  cpSync("LICENSE", join(out, "LICENSE"));
  const readme = join(workspace, "README.md");
  if (existsSync(readme)) write(join(out, "README.md"), withoutOutwardLinks(readFileSync(readme, "utf8")));
}

/** Copies the workspaces that a built package needs into its `node_modules`. */
function containWorkspaces(workspace: string): void {
  const out = join(workspace, "dist");
  const folders = new Map(
    workspaces.map((each) => [readJson<Manifest>(join(each, "package.json")).name, each]),
  );
  const contained = new Map<string, Manifest>();
  const open = [readJson<Manifest>(join(out, "package.json"))];
  for (const { dependencies = {} } of open) {
    for (const name of Object.keys(dependencies)) {
      const folder = folders.get(name);
      if (folder === undefined || contained.has(name)) continue;
      const manifest = readJson<Manifest>(join(folder, "dist/package.json"));
      cpSync(join(folder, "dist"), join(out, "node_modules", name), { recursive: true });
      contained.set(name, manifest);
      open.push(manifest);
    }
  }
  const built = readJson<Manifest>(join(out, "package.json"));
  const manifest = selfContained(built, [...contained.values()], root.optionalDependencies);
  write(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
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
