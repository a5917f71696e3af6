import type { CallLimits } from "./call-limits.ts";

/**
 * The capability and the cost of a call of one tool, as the configuration states them. Clients cannot influence
 * either value (DelegateOS 10.1 step 7, 11.3).
 */
export interface CallRule {
  /** Namespace of the required capability. */
  readonly namespace: string;
  /** Action of the required capability. */
  readonly action: string;
  /** The rule that derives the required resource from the call. */
  readonly resource: ResourceRule;
  readonly cost: CostRule;
  /**
   * Digest that the tool's definition must have (see definitionDigest). Without a digest, any definition is
   * allowed.
   */
  readonly definition?: string;
  /** Whether the arguments of a tool call must fit the tool's input schema; true for requests that call no tool. */
  readonly checkArguments: boolean;
  /** The limits of each principal's calls of this tool or method. */
  readonly limits: CallLimits;
}

/** The way to determine the resource of a call. */
export type ResourceRule =
  /** A fixed resource. `*` requires a token that grants every resource. */
  | { readonly kind: "fixed"; readonly value: string }
  /** The values of the arguments at these pointers (RFC 6901). The token must grant all of them. */
  | {
      readonly kind: "argument";
      readonly pointers: readonly string[];
      readonly form: ResourceForm;
      /** The resource of a missing argument. Without this default, the call needs a token for every resource. */
      readonly absent?: string;
    };

/**
 * How an argument names a resource.
 * - `text`: the text itself.
 * - `path`: an absolute path of the file system. Spellings that servers read differently are refused.
 * - `real-path`: a path with all symbolic links resolved. The proxy and the server must see the same files.
 * - `uri`: an address. A `file:` address becomes a path; for all other addresses the scheme becomes the first segment.
 * In the namespace `web`, an address is not changed.
 */
export const RESOURCE_FORMS = ["text", "path", "real-path", "uri"] as const;
export type ResourceForm = (typeof RESOURCE_FORMS)[number];

/** The cost of a call, in microcents. */
export interface CostRule {
  /**
   * The amount that the proxy reserves before the call: the cost or, if the cost varies, the maximum cost. 0 means that
   * the call is free.
   */
  readonly most: number;
  /** JSON pointer (RFC 6901) to the actual cost in the result. Without a pointer, `most` is charged. */
  readonly reported?: string;
}

/** The rules of a proxy for one server. The rules are in Maps, so a lookup never finds an inherited member. */
export interface ToolMap {
  /** The rules for tools, by tool name. */
  readonly tools: ReadonlyMap<string, CallRule>;
  /** The rules for other requests that need a capability, by method, for example `resources/read`. */
  readonly methods: ReadonlyMap<string, CallRule>;
  /** Methods without a rule that the configuration allows without a check. */
  readonly passed: ReadonlySet<string>;
}

/**
 * The resource pattern that matches every resource. A request for this pattern needs a token that grants every
 * resource.
 */
export const EVERY_RESOURCE = "*";
