/** Merges the modules of the platform into few files. See docs/adr/0014-built-packages.md. */
import { isBuiltin } from "node:module";
import { dirname, join, relative } from "node:path";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { withCompiledImports } from "./built-manifest.ts";

/** The packages that stay outside. Each one looks for a native addon beside its own files. */
export const OUTSIDE = ["sodium-native"];

/** The folder of the files that several entry points or a dynamic import load. */
const CHUNKS = "chunks";

export interface MergeOptions {
  /** The folder with the compiled workspaces, which the compiler lays out as the sources are. */
  readonly compiled: string;
  /** The entry point's path below `compiled`. */
  readonly entry: string;
  /** The folder to which the merged files are written. */
  readonly out: string;
  /** Returns the path below `out` of a module with a path below `compiled`. */
  readonly place: (path: string) => string;
}

export interface Merged {
  /** The modules of third-party packages in the merged files: absolute paths, sorted. */
  readonly thirdParty: readonly string[];
  /** The packages that the merged files import. */
  readonly imported: readonly string[];
}

/**
 * Merges a compiled entry point and all modules that it imports. A dynamic import stays dynamic, so a process loads
 * only what it uses. A file that the code starts as a thread or as a process keeps a path of its own.
 *
 * @throws Error for a module that is not found, or that the merge would change in meaning
 */
export async function mergeModules({ compiled, entry, out, place }: MergeOptions): Promise<Merged> {
  const build = await rolldown({
    input: { [withoutEnding(place(entry))]: join(compiled, entry) },
    platform: "node",
    external: OUTSIDE,
    // CommonJS modules name their folder `__dirname`, which an ES module lacks.
    transform: { define: { __dirname: "import.meta.dirname", __filename: "import.meta.filename" } },
    plugins: [compiledWorkspaces(compiled), ownAddresses({ compiled, entry, place }), inLatin1],
    onLog: (level, { message }) => {
      if (level === "warn") throw new Error(`the platform's modules cannot be merged: ${message}`);
    },
  });
  const { output } = await build.write({
    dir: out,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: `${CHUNKS}/[name]-[hash].js`,
    // Less text takes less memory. The names of functions stay, since stacks show them.
    minify: {
      compress: false,
      mangle: { toplevel: false, keepNames: true },
      codegen: { removeWhitespace: true },
    },
  });
  await build.close();
  const chunks = output.filter((each): each is OutputChunk => each.type === "chunk");
  const files = new Set(chunks.map(({ fileName }) => fileName));
  const imports = chunks.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports]);
  return {
    thirdParty: [...new Set(chunks.flatMap(({ moduleIds }) => moduleIds).filter(isThirdParty))].sort(),
    imported: [...new Set(imports)].filter((name) => !files.has(name) && !isBuiltin(name)).sort(),
  };
}

const isThirdParty = (file: string) => file.includes("/node_modules/");
const withoutEnding = (path: string) => path.replace(/\.js$/, "");

/**
 * Finds what compiled modules import. A package is looked for from the module's source, whose workspace may have its
 * own version. A workspace's source is replaced by its compiled form.
 */
function compiledWorkspaces(compiled: string): Plugin {
  const root = process.cwd();
  return {
    name: "compiled-workspaces",
    async resolveId(name, importer) {
      if (importer === undefined || /^(\.|\/|node:)/.test(name) || isThirdParty(importer)) return null;
      const found = await this.resolve(name, join(root, relative(compiled, importer)), { skipSelf: true });
      if (found === null || found.external !== false || isThirdParty(found.id)) return found;
      return join(compiled, relative(root, found.id).replace(/\.ts$/, ".js"));
    },
  };
}

/**
 * Keeps `import.meta.url` of each compiled module: an address at the module's own place, where its assets are. The
 * modules whose addresses the code gives to threads and processes become files at their places.
 */
function ownAddresses({ compiled, entry, place }: Omit<MergeOptions, "out">): Plugin {
  const started = new Set([entry]);
  return {
    name: "own-addresses",
    transform(code, id) {
      if (isThirdParty(id) || !code.includes("import.meta.url")) return null;
      const named = withCompiledImports(code);
      for (const [, path = ""] of named.matchAll(/new URL\("(\.[^"]+\.js)", import\.meta\.url\)/g)) {
        const module = relative(compiled, join(dirname(id), path));
        if (started.has(module)) continue;
        started.add(module);
        this.emitFile({ type: "chunk", id: join(compiled, module), fileName: place(module) });
      }
      return named.replaceAll("import.meta.url", `"own-address:${place(relative(compiled, id))}"`);
    },
    renderChunk(code, { fileName }) {
      return code.replace(/["'`]own-address:([^"'`]+)["'`]/g, (_, path: string) => {
        const way = relative(dirname(fileName), path);
        return `new URL(${JSON.stringify(way.startsWith(".") ? way : `./${way}`)},import.meta.url).href`;
      });
    },
  };
}

/**
 * Writes characters beyond Latin-1 as escapes. With one such character, V8 keeps the text of the whole file in two bytes
 * for each character.
 */
const inLatin1: Plugin = {
  name: "in-latin-1",
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== "chunk" || !/[^\0-\xff]/.test(file.code)) continue;
      // An escape inside String.raw would be text.
      if (/String\.raw`[^`]*[^\0-\xff]/.test(file.code))
        throw new Error(`${file.fileName} has String.raw with a character beyond Latin-1`);
      file.code = file.code.replace(/\\*[^\0-\xff]/g, (found) => {
        const backslashes = found.length - 1;
        const code = found.charCodeAt(backslashes).toString(16).padStart(4, "0");
        return `${"\\".repeat(backslashes - (backslashes % 2))}\\u${code}`;
      });
    }
  },
};
