/** The oldest major version of Node.js that can run the commands for clients. */
const CLIENT_MAJOR = 22;

/** The oldest major version of Node.js that can run the platform. */
const PLATFORM_MAJOR = 24;

/** The commands that run the platform's services. */
const PLATFORM_COMMANDS: ReadonlySet<string> = new Set(["start", "serve", "cluster"]);

/**
 * How to run a command: with this Node.js (`this`), with the Node.js in the package's dependencies (`other`), or not at
 * all (`none`, with the reason).
 */
export type NodeChoice =
  | { readonly kind: "this" }
  | { readonly kind: "other"; readonly file: string }
  | { readonly kind: "none"; readonly message: string };

/**
 * Chooses the Node.js for a command line.
 *
 * @param version the version of this Node.js, such as `22.21.1`
 * @param words the words of the command line after `depute`
 * @param findOther returns the path of the Node.js in the package's dependencies; undefined if it is not installed
 */
export function chooseNode(
  version: string,
  words: readonly string[],
  findOther: () => string | undefined,
): NodeChoice {
  const isPlatform = PLATFORM_COMMANDS.has(words[0] ?? "");
  const neededMajor = isPlatform ? PLATFORM_MAJOR : CLIENT_MAJOR;
  if (Number.parseInt(version, 10) >= neededMajor) return { kind: "this" };
  const file = findOther();
  if (file !== undefined) return { kind: "other", file };
  const command = isPlatform ? `depute ${words[0]}` : "depute";
  const advice = "install a later one, or the package's optional dependencies";
  return {
    kind: "none",
    message: `${command} needs Node.js ${neededMajor} or later, and this is ${version}; ${advice}`,
  };
}
