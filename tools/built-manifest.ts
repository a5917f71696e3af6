/** The members of a workspace's package.json that the build reads. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  /** Present only if the package is published. */
  readonly publishConfig?: { readonly access: "public" };
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** The files of one export, compiled from TypeScript. */
interface Compiled {
  readonly types: string;
  readonly default: string;
}

/** The oldest Node.js that runs the compiled packages. */
const ENGINES = { node: ">=22.0.0" };

/**
 * Derives the package.json of a compiled package from its source's package.json, so that exports and dependencies are
 * stated only once. A package with `publishConfig` loses `private`. The sources keep `private`, so that npm never
 * publishes them.
 *
 * @param folders the folders of the compiled package
 */
export function builtManifest(source: Manifest, folders: readonly string[]): Record<string, unknown> {
  const { private: isPrivate, exports = {}, bin, ...rest } = source;
  const shipped = Object.entries(exports).filter(([, file]) => !file.includes("/testing/"));
  return {
    ...rest,
    ...(source.publishConfig === undefined && isPrivate ? { private: true } : {}),
    engines: ENGINES,
    exports: Object.fromEntries([
      ...shipped.map(([entry, file]) => [entry, compiledExport(file)]),
      ["./package.json", "./package.json"],
    ]),
    ...(bin && { bin: Object.fromEntries(Object.entries(bin).map(([name, file]) => [name, inJs(file)])) }),
    files: folders,
  };
}

function compiledExport(file: string): Compiled | string {
  return file.endsWith(".ts") ? { types: file.replace(/\.ts$/, ".d.ts"), default: inJs(file) } : file;
}

function inJs(file: string): string {
  return file.replace(/\.ts$/, ".js");
}

/** What {@link platformManifest} adds to the manifest of the platform's package. */
export interface PlatformNeeds {
  /** The packages that the merged files import. */
  readonly imported: readonly string[];
  /** Further dependencies, which npm may leave out. */
  readonly optional: Readonly<Record<string, string>>;
}

/**
 * Derives the package.json of the platform's package. Its files contain the workspaces and the packages that these
 * need. So its dependencies are the few packages that its files import. It has a command and no modules for others.
 *
 * @param built the package's own package.json
 * @param contained the package.json of each workspace in the package
 * @throws Error when two workspaces need different versions of an imported package, or none needs it
 */
export function platformManifest(
  built: Record<string, unknown>,
  contained: readonly Manifest[],
  { imported, optional }: PlatformNeeds,
): Record<string, unknown> {
  const versionOf = (name: string) => {
    const versions = [built, ...contained]
      .map(({ dependencies }) => (dependencies as Record<string, string> | undefined)?.[name])
      .filter((version) => version !== undefined);
    const [version, other = version] = new Set(versions);
    if (version === undefined) throw new Error(`${name} is imported, and no workspace depends on it`);
    if (other !== version)
      throw new Error(`${name} is needed as ${version} and as ${other}: choose one version`);
    return version;
  };
  return {
    ...built,
    exports: { "./package.json": "./package.json" },
    dependencies: Object.fromEntries(imported.map((name) => [name, versionOf(name)])),
    optionalDependencies: optional,
  };
}

/**
 * Rewrites imports of TypeScript files to JavaScript files, in declaration files and in module addresses. The compiler
 * leaves both unchanged.
 */
export function withCompiledImports(code: string): string {
  return code
    .replace(/(\bfrom |\bimport\(|\bimport )"(\.{1,2}\/[^"]+)\.ts"/g, '$1"$2.js"')
    .replace(/new URL\("(\.{1,2}\/[^"]+)\.ts", import\.meta\.url\)/g, 'new URL("$1.js", import.meta.url)');
}

/**
 * Replaces links that lead out of the package by their text, because readers of a package registry cannot follow them.
 */
export function withoutOutwardLinks(readme: string): string {
  return readme.replace(/\[([^\]]+)\]\(\.\.\/[^)]*\)/g, "$1");
}
