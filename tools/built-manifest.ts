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

/**
 * Derives the package.json of a package that contains the workspaces that it needs, so that it can be installed alone.
 * Its dependencies are those of all these workspaces.
 *
 * @param built the package's own package.json
 * @param contained the package.json of each workspace in the package
 * @param optional further dependencies, which npm may leave out
 * @throws Error when two workspaces need different versions of a dependency
 */
export function selfContained(
  built: Record<string, unknown>,
  contained: readonly Manifest[],
  optional: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const dependencies: Record<string, string> = {};
  for (const { dependencies: needed } of [built, ...contained]) {
    for (const [name, version] of Object.entries((needed ?? {}) as Record<string, string>)) {
      if ((dependencies[name] ?? version) !== version)
        throw new Error(`${name} is needed as ${dependencies[name]} and as ${version}: choose one version`);
      dependencies[name] = version;
    }
  }
  return {
    ...built,
    dependencies: Object.fromEntries(Object.entries(dependencies).sort()),
    optionalDependencies: optional,
    bundleDependencies: contained.map(({ name }) => name).sort(),
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
