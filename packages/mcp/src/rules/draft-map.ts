/** The parts of a listed tool from which the drafted rule is made. */
export interface DraftedTool {
  readonly name: string;
  readonly inputSchema?: unknown;
  readonly annotations?: { readonly readOnlyHint?: unknown; readonly destructiveHint?: unknown };
}

/** A rule in the form of the configuration. */
export interface DraftedRule {
  readonly namespace: string;
  readonly action: string;
  readonly resource: string | { readonly argument: string; readonly form: string };
  readonly cost: number;
  readonly definition: string;
}

/**
 * Names of arguments that usually contain a tool's resource, the most specific first. Each entry also has the namespace
 * and the form of the resource.
 */
const RESOURCES: readonly (readonly [name: RegExp, namespace: string, form: string])[] = [
  [/^(path|file|file_?path|filename|dir|directory|folder|repo_?path)$/i, "docs", "path"],
  [/^(url|uri|href|link)$/i, "web", "uri"],
  [/^(table|collection|database|db|schema|index|dataset|bucket)$/i, "data", "text"],
  [/^(model)$/i, "llm", "text"],
  [/^(language|lang)$/i, "code", "text"],
];

/**
 * Words in tools' names, and the action that each word means in a namespace. The first matching word that has an action
 * in the namespace decides.
 */
const ACTIONS: readonly (readonly [word: RegExp, actions: Readonly<Record<string, string>>])[] = [
  [/delete|remove|drop|purge|unlink/, { docs: "delete", data: "delete" }],
  [/write|edit|create|move|rename|append|save|put|upload|commit/, { docs: "write", data: "insert" }],
  [/update|set|modify|patch|upsert/, { docs: "write", data: "update" }],
  [/insert|add/, { docs: "write", data: "insert" }],
  [/search|find/, { docs: "read", data: "query", web: "search" }],
  [/browse|navigate|click/, { web: "browse" }],
  [/embed/, { llm: "embed" }],
  [/classify/, { llm: "classify" }],
  [/test/, { code: "test" }],
  [/analy|lint|check/, { code: "analyze" }],
];

const USUAL: Readonly<Record<string, string>> = {
  docs: "read",
  web: "fetch",
  data: "query",
  llm: "generate",
  code: "execute",
  compute: "execute",
};

/**
 * Drafts a tool map from a server's lists, for a person to review. If no argument of a tool has a name in RESOURCES,
 * the rule requires `compute:execute` on `{server}/{tool}`. This capability allows only this tool, so an unreviewed
 * draft grants little.
 *
 * @param digestOf returns the digest of a definition. The drafted rule pins the tool to this digest
 */
export function draftMap(
  server: string,
  tools: readonly DraftedTool[],
  digestOf: (tool: DraftedTool) => string,
): { tools: Record<string, DraftedRule> } {
  return {
    tools: Object.fromEntries(tools.map((tool) => [tool.name, draftRule(server, tool, digestOf(tool))])),
  };
}

function draftRule(server: string, tool: DraftedTool, definition: string): DraftedRule {
  const { name, annotations } = tool;
  const known = textArguments(tool);
  for (const [argument, namespace, form] of RESOURCES) {
    const found = known.find((one) => argument.test(one));
    if (found === undefined) continue;
    const action = actionOf(name.toLowerCase(), namespace, annotations?.readOnlyHint === true);
    const pointer = `/${found.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return { namespace, action, resource: { argument: pointer, form }, cost: 0, definition };
  }
  return {
    namespace: "compute",
    action: "execute",
    resource: `${server}/${name.replaceAll("*", "_")}`,
    cost: 0,
    definition,
  };
}

function actionOf(name: string, namespace: string, isReadOnly: boolean): string {
  const usual = USUAL[namespace] ?? "execute";
  if (isReadOnly) return usual;
  for (const [word, actions] of ACTIONS) {
    const action = word.test(name) ? actions[namespace] : undefined;
    if (action !== undefined) return action;
  }
  const reads = /^(get|read|list|fetch|show|open|view|query|search|find|describe)/.test(name);
  const writing = { docs: "write", data: "update" }[namespace];
  return reads || writing === undefined ? usual : writing;
}

function textArguments({ inputSchema }: DraftedTool): string[] {
  const { properties } = (inputSchema ?? {}) as { properties?: unknown };
  if (typeof properties !== "object" || properties === null) return [];
  return Object.entries(properties)
    .filter(([, schema]) => (schema as { type?: unknown } | null)?.type === "string")
    .map(([name]) => name);
}
