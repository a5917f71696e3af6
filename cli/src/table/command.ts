/** The type of a parameter. It determines how the parser converts the parameter's text to a value of the request. */
export type ParameterType =
  | "string"
  /** A whole number, as text, because a JSON number cannot represent every 64-bit integer. */
  | "int"
  | "number"
  | "bool"
  /** A duration such as `250ms`, `30s`, `5m`, `1h` or `7d`. */
  | "duration"
  /** A time of RFC 3339, or a duration from now such as `+1h`. */
  | "time"
  /** A JSON text, `@FILE` for the text in a file, or `-` for standard input. */
  | "json"
  | "enum"
  /** The path of a file. */
  | "file";

/** A parameter of a command: an argument or a flag. */
export interface Parameter {
  readonly type: ParameterType;
  readonly help: string;
  /** The path of the request field that receives the value, in JSON names, e.g. `draft.agentId`. */
  readonly field?: string;
  readonly required?: boolean;
  /** Whether the user may repeat the flag. */
  readonly repeated?: boolean;
  /** For `enum`: the values, lower case with dashes. */
  readonly values?: readonly string[];
  /** For `enum`: the prefix of the contract's constants, e.g. `TASK_STATUS_`. */
  readonly prefix?: string;
  /** The value if the flag is absent. Help and docs/cli.md show it. */
  readonly default?: string;
  /** The one-letter form of the flag, without the dash. */
  readonly short?: string;
}

/** A positional argument. The name is in upper case, unlike the name of a flag. */
export interface Argument extends Parameter {
  readonly name: string;
}

export type Flags = Readonly<Record<string, Parameter>>;

/**
 * The format in which a column shows a value. `enum:PREFIX_`: the name of a constant without its prefix. `age`: the
 * time since a timestamp. `count`: the length of a list. `usd`: an amount of microcents in dollars. `number` and
 * `flag`: an absent value is shown as 0 or false, because ProtoJSON omits zeros.
 */
export type ColumnFormat =
  | "text"
  | "number"
  | "flag"
  | "age"
  | "time"
  | "list"
  | "count"
  | "usd"
  | `enum:${string}`;

/**
 * A column of a table: its heading, the paths of its value in the item's JSON (`|` separates alternatives), and its
 * format.
 */
export type Column = readonly [heading: string, path: string, format?: ColumnFormat];

/** How the response of a call is shown: its item, and the columns of the table. */
export interface Shown {
  /**
   * The field of the response that contains the item, or the list of items. Empty if the response itself is the
   * item.
   */
  readonly item: string;
  readonly columns: readonly Column[];
  /** Additional columns that only `-o wide` shows. */
  readonly wide?: readonly Column[];
}

/**
 * A server stream that `--watch` follows instead of reading the list at intervals. The stream must begin with the
 * existing items. If the stream's request lacks a field that the user has set, `--watch` reads the list.
 */
export interface Stream {
  readonly method: string;
  /** Path of the item in each message of the stream. A message without an item is skipped. */
  readonly item: string;
  /** Whether `item` leads to a list of new and changed items, newest first. */
  readonly isList?: boolean;
  /** Fixed fields of the stream's request. The command line adds further fields. */
  readonly request?: Readonly<Record<string, unknown>>;
}

/** The RPC that a command calls, and how the command prints the response. */
export interface Call {
  readonly service: ServiceName;
  readonly method: string;
  /** Fixed fields of the request. The command line adds further fields. */
  readonly request?: Readonly<Record<string, unknown>>;
  readonly shown: Shown;
  /** Whether the response is a list with pages. */
  readonly list?: boolean;
  /** Whether the forms `table` and `wide` print the item as a YAML document, instead of as a row of a table. */
  readonly describe?: boolean;
  readonly stream?: Stream;
}

/** A service of the contracts that a command calls. */
export type ServiceName =
  | "agents"
  | "audit"
  | "authorities"
  | "cluster"
  | "contracts"
  | "delegations"
  | "discovery"
  | "executions"
  | "keys"
  | "log"
  | "messages"
  | "offers"
  | "organizations"
  | "policy"
  | "proposals"
  | "reviews"
  | "revocations"
  | "rootKeys"
  | "sessions"
  | "tasks"
  | "tokens"
  | "trust"
  | "witness";

/** A parsed command line. It is the input of the command's program. */
export interface Invocation {
  readonly command: Command;
  /** The texts of arguments and flags by name. A repeated flag has a list, and a flag without a value has `true`. */
  readonly values: Readonly<Record<string, string | boolean | readonly string[]>>;
  /** The words after `--`. */
  readonly rest: readonly string[];
}

/** One command. The parser, the help, the shell completion and docs/cli.md all use this definition. */
export interface Command {
  /** The words that name the command, e.g. `tasks list`. */
  readonly path: string;
  /** The heading under which help lists a command without a resource. */
  readonly group?: "platform" | "work" | "settings" | "tools";
  /** The description of the command, in one line. */
  readonly summary: string;
  readonly details?: string;
  readonly args?: readonly Argument[];
  readonly flags?: Flags;
  /** The name that help shows for the words after `--`. */
  readonly rest?: string;
  /** Whether the command calls the platform. It then accepts the flags of the connection and of the output. */
  readonly remote?: boolean;
  /** A command line that docs/cli.md shows. The test of docs/cli.md runs it. */
  readonly example?: string;
  /** The reason why the test of docs/cli.md does not run `example`. */
  readonly notRun?: string;
  readonly hidden?: boolean;
  readonly call?: Call;
  /** Name of a program in programs.ts. */
  readonly program?: string;
  /** Name of a command in programs.ts that itself parses the words after its path. */
  readonly ownWords?: string;
}
