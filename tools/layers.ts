import { builtinModules } from "node:module";
import { posix } from "node:path";
import { covers, NOT_BESIDE_RULES, NOT_IN_RULES, ROOMS, SEES_EVERYTHING } from "./rooms.ts";

export interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** A repository to check. All paths are relative to its root, with `/`. */
export interface Repository {
  /** By folder; "" is the root. */
  manifests: ReadonlyMap<string, Manifest>;
  /** TypeScript sources by path. */
  files: ReadonlyMap<string, string>;
}

export interface Violation {
  file: string;
  line: number;
  rule: string;
}

const COMMENT_LINE = /^[ \t]*(?:\/\/|\/?\*).*$/gm;

/** Static imports and re-exports at the start of a line, and dynamic ones anywhere. */
const IMPORTS = [
  /^[ \t]*import\s+(?:[\w$*{}\s,]+?\sfrom\s*)?["']([^"'\n]+)["']/gm,
  /^[ \t]*export\s+(?:type\s+)?(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})\s*from\s*["']([^"'\n]+)["']/gm,
  /(?<![\w$.])import\s*\(\s*["']([^"'\n]+)["']/g,
];

/** Every import of a source, with its line. */
export function importsOf(source: string): { specifier: string; line: number }[] {
  const code = source.replace(COMMENT_LINE, "");
  const found = IMPORTS.flatMap((pattern) => [...code.matchAll(pattern)]);
  return found.map((match) => {
    const end = match.index + match[0].length;
    return { specifier: match[1] ?? "", line: code.slice(0, end).split("\n").length };
  });
}

/** Every import that breaks a rule of docs/architecture.md, in the order of files and lines. */
export function checkLayers(repository: Repository): Violation[] {
  const violations: Violation[] = [];
  for (const folder of repository.manifests.keys()) {
    if (folder !== "" && roomOf(folder) === undefined) {
      const rule = "every workspace has its room in tools/rooms.ts and docs/architecture.md";
      violations.push({ file: `${folder}/package.json`, line: 1, rule });
    }
  }
  for (const [file, source] of repository.files) {
    for (const { specifier, line } of importsOf(source)) {
      const rule = brokenRule(file, specifier, repository.manifests);
      if (rule !== undefined) violations.push({ file, line, rule });
    }
  }
  return violations.sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line);
}

/** The rule that one import breaks, as a sentence. */
function brokenRule(file: string, specifier: string, manifests: Repository["manifests"]): string | undefined {
  const workspace = workspaceOf(file, manifests);
  const inRules = /(^|\/)rules\//.test(file) && !isTest(file);
  if (specifier.startsWith(".")) {
    const target = posix.join(posix.dirname(file), specifier);
    return brokenRelative(file, specifier, target, workspace, manifests, inRules);
  }
  if (specifier.startsWith("#")) return undefined;
  if (specifier.startsWith("node:") || builtinModules.includes(specifier)) {
    return inRules ? `rules are pure: ${specifier} does I/O` : undefined;
  }
  const name = packageName(specifier);
  if (inRules && NOT_IN_RULES.includes(name)) return `rules are pure: ${name} does I/O`;
  const target = [...manifests].find(([folder, manifest]) => folder !== "" && manifest.name === name)?.[0];
  // The root's own files (tools, tests, configuration) look at every workspace.
  if (target === workspace || (target !== undefined && workspace === "")) return undefined;
  if (target !== undefined && !mayImport(workspace, target)) return `${workspace} may not import ${target}`;
  if (isDeclared(name, file, workspace, manifests)) return undefined;
  return `${name} is not among the dependencies of ${posix.join(workspace, "package.json")}`;
}

function brokenRelative(
  file: string,
  specifier: string,
  target: string,
  workspace: string,
  manifests: Repository["manifests"],
  inRules: boolean,
): string | undefined {
  if (target.startsWith("../") || workspaceOf(target, manifests) !== workspace) {
    return `${specifier} leaves the workspace; import it by its name`;
  }
  const [wire, other] = [wireOf(file), wireOf(target)];
  if (wire !== undefined && other !== undefined && wire !== other) {
    return `wires do not import one another: ${wire} imports ${other}`;
  }
  const beside = NOT_BESIDE_RULES.find((folder) => target.split("/").includes(folder));
  if (inRules && workspace.startsWith("services/") && beside !== undefined) {
    return `rules are pure: ${beside}/ does I/O`;
  }
  return undefined;
}

function isDeclared(
  name: string,
  file: string,
  workspace: string,
  manifests: Repository["manifests"],
): boolean {
  const own = manifests.get(workspace);
  const root = manifests.get("");
  const seesAll = workspace === "" && SEES_EVERYTHING.some((folder) => file.startsWith(`${folder}/`));
  const seen = seesAll ? [...manifests.values()] : [own];
  const declared = seen.flatMap((one) => [
    one?.dependencies,
    one?.devDependencies,
    one?.optionalDependencies,
  ]);
  if (isTest(file)) declared.push(root?.devDependencies);
  return declared.some((dependencies) => dependencies !== undefined && name in dependencies);
}

/** Tests, and what tests are helped by; they are not shipped. */
function isTest(file: string): boolean {
  return file.endsWith(".test.ts") || /(^|\/)src\/testing\//.test(file);
}

function mayImport(from: string, to: string): boolean {
  return (ROOMS[roomOf(from) ?? ""] ?? []).some((pattern) => covers(pattern, to));
}

function roomOf(folder: string): string | undefined {
  return Object.keys(ROOMS).find((pattern) => covers(pattern, folder));
}

/** The innermost workspace that a path is in; "" for the root. */
function workspaceOf(path: string, manifests: Repository["manifests"]): string {
  let found = "";
  for (const folder of manifests.keys()) {
    if (path.startsWith(`${folder}/`) && folder.length > found.length) found = folder;
  }
  return found;
}

function wireOf(path: string): string | undefined {
  return /^gateway\/(?:src\/)?wires\/([^/]+)\//.exec(path)?.[1];
}

function packageName(specifier: string): string {
  const parts = specifier.split("/");
  return parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}
