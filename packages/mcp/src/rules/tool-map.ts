/**
 * What a tool's call needs and costs, as configuration says it. A client has no say in what is checked (DelegateOS
 * 10.1 step 7, 11.3).
 */
export interface CallRule {
  /** Namespace of the capability that the call needs. */
  readonly namespace: string;
  /** Its action. */
  readonly action: string;
  /** Which resource the call is about. */
  readonly resource: ResourceRule;
  readonly cost: CostRule;
  /** Digest of the definition that the tool must have, as definitionDigest gives it; any definition without it. */
  readonly definition?: string;
}

/** Where the resource of a call is found. */
export type ResourceRule =
  /** Always the same. `*` is every resource, which only a token for every resource grants. */
  | { readonly kind: "fixed"; readonly value: string }
  /** What the arguments at these pointers (RFC 6901) say. A token has to grant all the resources of a call. */
  | {
      readonly kind: "argument";
      readonly pointers: readonly string[];
      readonly form: ResourceForm;
      /** What a missing argument means; a call without it is denied, unless the token is for every resource. */
      readonly absent?: string;
    };

/**
 * How an argument names a resource.
 *
 * - `text`: as it is.
 * - `path`: an absolute path of the file system, in a spelling that no server reads as another one.
 * - `real-path`: the same, with every link followed, where proxy and server see the same files.
 * - `uri`: an address; `file:` ones are paths, of others the scheme is the first segment. In namespace `web` as it is.
 */
export const RESOURCE_FORMS = ["text", "path", "real-path", "uri"] as const;
export type ResourceForm = (typeof RESOURCE_FORMS)[number];

/** What a call costs, in microcents. */
export interface CostRule {
  /** Set aside before the call: its cost, or the most that it may be. 0 for a call that costs nothing. */
  readonly most: number;
  /** Where the answer says what it did cost, as a pointer (RFC 6901) into the result; `most` is charged without it. */
  readonly reported?: string;
}

/** What a proxy lets through to one server. Names are looked up in maps: nothing is inherited. */
export interface ToolMap {
  /** By the tools' names. */
  readonly tools: ReadonlyMap<string, CallRule>;
  /** Requests other than tools/call that need a right, by method: `resources/read`. */
  readonly methods: ReadonlyMap<string, CallRule>;
  /** Methods without a rule of their own that pass unseen, by decision of whoever configures it. */
  readonly passed: ReadonlySet<string>;
}

/** Every resource; only a token for every resource grants it. */
export const EVERY_RESOURCE = "*";
