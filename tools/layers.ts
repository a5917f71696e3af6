import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";
import { cycleRules, fileRules, TESTS } from "./layer-rules.ts";

/** An import that breaks a rule. All paths are relative to the root, with `/`. */
export interface Violation {
  /** The name of the rule. */
  readonly rule: string;
  /** The rule as a sentence. */
  readonly comment: string;
  /** A file, or a folder for `folder-cycle`. */
  readonly from: string;
  readonly to: string;
  /** For a cycle, the path from `to` back to `from`; otherwise empty. */
  readonly cycle: readonly string[];
}

/** A known violation. */
export interface Exception {
  readonly rule: string;
  /** The prefix of the importing file's or folder's path. */
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

export interface Layers {
  readonly files: number;
  readonly violations: readonly Violation[];
  /** Exceptions without a violation. A developer must remove such exceptions. */
  readonly unused: readonly Exception[];
}

/** Matches the folders into which builds write. */
const BUILT = "^((packages|services|examples)/[^/]+|gateway|cli|console)/dist/|^gateway/console/";

/** TypeScript is parsed by swc, because TypeScript 7 publishes no stable API yet. */
const OPTIONS: ICruiseOptions = {
  parser: "swc",
  tsPreCompilationDeps: true,
  combinedDependencies: true,
  skipAnalysisNotInRules: true,
  exclude: { path: BUILT },
  doNotFollow: { path: "^packages/contracts/gen/|(^|/)node_modules/" },
  enhancedResolveOptions: {
    exportsFields: ["exports"],
    conditionNames: ["types", "import", "node", "default"],
    extensions: [".ts", ".tsx", ".js", ".mjs", ".cjs", ".json", ".d.ts"],
  },
};

const NOT_SHIPPED = `${TESTS}|(^|/)node_modules/|${BUILT}`;

/**
 * Checks the imports of a repository.
 *
 * @param root the folder of the repository, as an absolute path
 * @param folders the folders with sources
 */
export async function checkLayers(
  root: string,
  folders: readonly string[],
  exceptions: readonly Exception[] = [],
): Promise<Layers> {
  const [forFiles, forCircles] = [fileRules(), cycleRules()];
  const comments = new Map([...forFiles, ...forCircles].map(({ name, comment }) => [name, comment]));
  const all = await run(root, folders, { validate: true, ruleSet: { forbidden: forFiles } });
  const shipped = await run(root, folders, {
    validate: true,
    ruleSet: { forbidden: forCircles },
    exclude: { path: NOT_SHIPPED },
  });
  const used = new Set<Exception>();
  const violations = [all, shipped]
    .flatMap(({ summary }) => summary.violations)
    .map(({ rule: { name }, from, to, cycle = [] }) => {
      return {
        rule: name,
        comment: comments.get(name) ?? "",
        from,
        to,
        cycle: cycle.map((step) => step.name),
      };
    })
    .filter((violation) => {
      const exception = exceptions.find((one) => allows(one, violation));
      if (exception !== undefined) used.add(exception);
      return exception === undefined;
    });
  const unused = exceptions.filter((exception) => !used.has(exception));
  return { files: all.modules.filter(({ source }) => /[.]tsx?$/.test(source)).length, violations, unused };
}

/**
 * Returns the imports of each shipped file within its own workspace, as paths relative to the root.
 *
 * @param root an absolute path
 * @param folders the folders with sources
 */
export async function relativeImports(
  root: string,
  folders: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { modules } = await run(root, folders, { exclude: { path: NOT_SHIPPED } });
  return new Map(
    modules.map(({ source, dependencies }) => [
      source,
      dependencies.filter(({ module }) => module.startsWith(".")).map(({ resolved }) => resolved),
    ]),
  );
}

function allows(exception: Exception, { rule, from, to }: Violation): boolean {
  return exception.rule === rule && from.startsWith(exception.from) && to.startsWith(exception.to);
}

async function run(
  root: string,
  folders: readonly string[],
  options: ICruiseOptions,
): Promise<ICruiseResult> {
  const { output } = await cruise([...folders], { ...OPTIONS, baseDir: root, ...options });
  if (typeof output === "string") throw new Error("dependency-cruiser answered with a text");
  return output;
}
