import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Timeout of one program, in milliseconds. */
export const MAX_MS = 300_000;

/** A package as `npm pack` made it. */
export interface Packed {
  readonly name: string;
  readonly folder: string;
  readonly tarball: string;
  /** Paths within the package. */
  readonly files: readonly string[];
}

interface PackReport {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

/**
 * Runs a program, and returns its output.
 *
 * @throws Error with the program's output if it fails
 */
export function run(program: string, args: readonly string[], cwd = process.cwd()): string {
  try {
    return execFileSync(program, args, { cwd, encoding: "utf8", stdio: "pipe", timeout: MAX_MS });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

/** Returns the folders of the workspaces that are published. */
export function publishedFolders(): string[] {
  const isPublished = (manifest: string) => "publishConfig" in JSON.parse(readFileSync(manifest, "utf8"));
  return globSync("packages/*/package.json").filter(isPublished).map(dirname).sort();
}

/** Compiles all workspaces, and packs the published ones into a folder. */
export function buildAndPack(destination: string): Packed[] {
  run("npm", ["run", "--silent", "build"]);
  return publishedFolders().map((workspace) => pack(workspace, destination));
}

/** Packs a workspace that was compiled, into a folder. */
export function pack(workspace: string, destination: string): Packed {
  const folder = join(workspace, "dist");
  const { name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name: string };
  const out = run("npm", ["pack", `./${folder}`, "--json", "--pack-destination", destination]);
  const [report] = Object.values(JSON.parse(out) as PackReport[]);
  const { filename = "", files = [] } = report ?? {};
  return { name, folder, tarball: join(destination, filename), files: files.map(({ path }) => path) };
}

/**
 * Creates an empty project outside the repository, with the packages installed from their tarballs. Returns its folder.
 */
export function installed(packed: readonly Packed[]): string {
  const project = mkdtempSync(join(tmpdir(), "depute-project-"));
  write(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  const tarballs = packed.map(({ tarball }) => tarball);
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs], project);
  return project;
}

export function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
