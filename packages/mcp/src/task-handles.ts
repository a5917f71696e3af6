import { isObject } from "@depute/core";
import type { Right } from "./rules/visible.ts";

/** Encrypts and authenticates values, bound to a context. Only the same key and context open a value. */
export interface Seal {
  seal(secret: Uint8Array, context: Readonly<Record<string, string>>): string;
  /** Returns the value; undefined if the key or the context differs, or if the bytes were changed. */
  open(sealed: string, context: Readonly<Record<string, string>>): Uint8Array | undefined;
}

/** The facts about a server's task that are sealed in the task's id for clients. */
export interface TaskHandle {
  /** The id of the task at the server. */
  readonly taskId: string;
  readonly tool: string;
  /** The capabilities that the call that created the task needed. Each later request needs them again. */
  readonly rights: readonly Right[];
  /** The holder of the token, and the principal of the login, of that call; each is empty if the call had none. */
  readonly caller: readonly [holder: string, login: string];
  /** The name of the connection to the server on which the task began: see Upstream.connectionOf. */
  readonly connection: string;
}

/** Maximum size in bytes of a handle before it is sealed, so that the sealed id fits into a header. */
const MAX_BYTES = 4096;
/** Maximum length in characters of a server's own id of a task. */
const MAX_TASK_ID = 512;
/** Maximum length in characters of an id that a client sends. */
const MAX_SEALED = 8192;

/**
 * Creates and opens the ids of tasks that clients use. An id is a sealed handle. So every process with the key can open
 * it, and no process has to store it.
 */
export class TaskHandles {
  readonly #seal: Seal;
  readonly #context: Readonly<Record<string, string>>;

  /** @param server the name of the server; an id of one server cannot be opened for another server */
  constructor(seal: Seal, server: string) {
    this.#seal = seal;
    this.#context = { mcpTaskOf: server };
  }

  /** Whether a call with these facts can have a task. If false, the sealed id of the task would be too long. */
  fits(facts: Omit<TaskHandle, "taskId">): boolean {
    return bytesOf({ ...facts, taskId: "" }).length <= MAX_BYTES - MAX_TASK_ID;
  }

  /**
   * Returns the client's id of a task. Returns undefined if the server's id is not a text of 1 to 512 characters, or if
   * the client's id would be too long.
   */
  seal(facts: Omit<TaskHandle, "taskId">, taskId: unknown): string | undefined {
    if (typeof taskId !== "string" || taskId === "" || taskId.length > MAX_TASK_ID) return undefined;
    const bytes = bytesOf({ ...facts, taskId });
    return bytes.length > MAX_BYTES ? undefined : this.#seal.seal(bytes, this.#context);
  }

  /** Returns the facts about a task; undefined if the value is not an id of a task of this caller and server. */
  open(id: unknown, caller: TaskHandle["caller"]): TaskHandle | undefined {
    if (typeof id !== "string" || id.length > MAX_SEALED) return undefined;
    const bytes = this.#seal.open(id, this.#context);
    if (bytes === undefined) return undefined;
    const handle: unknown = JSON.parse(new TextDecoder().decode(bytes));
    // Only this class seals with this context, so the opened value has the type of TaskHandle.
    const facts = isObject(handle) ? (handle as unknown as TaskHandle) : undefined;
    return facts?.caller.every((principal, i) => principal === caller[i]) === true ? facts : undefined;
  }
}

function bytesOf(handle: TaskHandle): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(handle));
}
