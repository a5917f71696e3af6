import { type QuickSchema, readQuickSchema } from "@depute/wire/json-schema";
import { type ParamHeader, paramHeadersOf } from "./rules/param-headers.ts";
import { runsOnlyAsTask } from "./rules/server-task.ts";

/** Maximum total length of the stored schemas, in UTF-16 code units of JSON. */
const MAX_SCHEMA_CHARS = 16 * 1024 * 1024;

/** The arguments that a tool's definition declares. */
export interface ToolInput {
  /** Whether the tool runs only as a task (MCP 2025-11-25, `execution.taskSupport`). */
  readonly isTaskOnly: boolean;
  /** The HTTP headers that repeat arguments (`x-mcp-header`). */
  readonly headers: readonly ParamHeader[];
  /** The JSON Schema of the arguments; undefined if the server's schemas together exceed the limit. */
  readonly schema: { readonly json: unknown; readonly quick: QuickSchema | undefined } | undefined;
}

interface Kept extends ToolInput {
  readonly digest: string;
  readonly chars: number;
}

/** The inputs of one server's tools. An input is read again only when the digest of the tool's definition changes. */
export class ToolInputs {
  readonly #maxTools: number;
  readonly #kept = new Map<string, Kept>();
  #chars = 0;

  constructor(maxTools: number) {
    this.#maxTools = maxTools;
  }

  /** @param digest the digest of the tool's definition */
  note(
    name: string,
    digest: string,
    { inputSchema, execution }: { readonly inputSchema?: unknown; readonly execution?: unknown },
  ): void {
    if (this.#kept.get(name)?.digest === digest) return;
    this.#forget(name);
    if (this.#kept.size >= this.#maxTools) return;
    // A tool without a schema accepts every object.
    const json = inputSchema ?? { type: "object" };
    const { length } = JSON.stringify(json);
    const hasRoom = this.#chars + length <= MAX_SCHEMA_CHARS;
    const chars = hasRoom ? length : 0;
    const schema = hasRoom ? { json, quick: readQuickSchema(json) } : undefined;
    const isTaskOnly = runsOnlyAsTask({ execution });
    this.#kept.set(name, { digest, chars, isTaskOnly, headers: paramHeadersOf(inputSchema), schema });
    this.#chars += chars;
  }

  /** Removes each tool that the server's latest complete list does not contain. */
  keep(names: Pick<ReadonlyMap<string, unknown>, "has">): void {
    for (const name of this.#kept.keys()) if (!names.has(name)) this.#forget(name);
  }

  of(name: string): ToolInput | undefined {
    return this.#kept.get(name);
  }

  #forget(name: string): void {
    this.#chars -= this.#kept.get(name)?.chars ?? 0;
    this.#kept.delete(name);
  }
}
