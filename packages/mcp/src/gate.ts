import { create } from "@bufbuild/protobuf";
import { type DenialReason, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { CapabilityListSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { CanonicalError } from "@depute/core";
import type { Authoriser, Verdict } from "./authoriser.ts";
import { argumentsDigest } from "./digest.ts";
import { createPresented, type Presentation } from "./presentation.ts";
import type { GatedRequest } from "./rules/methods.ts";
import { denialOf, INVALID_PARAMS, Refusal, unmapped } from "./rules/refusal.ts";
import { resourceOf } from "./rules/resource.ts";
import type { CallRule } from "./rules/tool-map.ts";
import { grants, type Right } from "./rules/visible.ts";

const NO_CAPABILITIES = create(CapabilityListSchema, {});
const NO_TOKEN = {
  type: DenialType.CAPABILITY_NOT_GRANTED,
  granted: NO_CAPABILITIES,
  detail: "the call has no token",
};
/** Maximum length of a resource in characters (DelegateOS 10.2). */
const MAX_RESOURCE_CHARS = 1024;

/** The facts about an admitted call. */
export interface Admitted {
  readonly rule: CallRule;
  /** The capability that appears in error messages about the call: the first of `rights`. */
  readonly right: Right;
  /** All capabilities that the call needs, at least one. */
  readonly rights: readonly Right[];
  /** The principal that holds the token; undefined if the call has no token. */
  readonly principal?: string;
  /** The revocation ids of the token's blocks, beginning with the authority block; empty if the call has no token. */
  readonly blocks: readonly string[];
}

/** The proven holder of a token, and the ids of the token's blocks. */
export interface ProvenHolder {
  readonly principal: string;
  readonly blocks: readonly string[];
}

export interface GateOptions {
  readonly authoriser: Authoriser;
  readonly requireToken: boolean;
  /**
   * Returns a path with all symbolic links resolved, for rules of the form `real-path`; undefined if the system cannot
   * resolve a link.
   */
  realPath(path: string): Promise<string | undefined>;
}

/**
 * Admits a call, or throws a Refusal. The decision is valid only for this call with these arguments.
 *
 * @throws Refusal; DeputeError if the authoriser is unavailable
 */
export async function admit(
  options: GateOptions,
  gatedRequest: GatedRequest,
  presentation: Presentation | undefined,
): Promise<Admitted> {
  const { rule, right, rights } = await needed(options, gatedRequest, presentation);
  const { args, name, proved = args } = gatedRequest;
  const holder = await admitRights(options, { rights, proved, name }, presentation);
  return { rule, right, rights, blocks: [], ...holder };
}

/** The capabilities that a request needs. */
export interface NeededRights {
  readonly rights: readonly Right[];
  /** The values that the proof covers. */
  readonly proved: unknown;
  /** The tool, or the method of any other request, for the audit log. */
  readonly name: string;
}

/**
 * Admits a request that needs these capabilities. If `rights` is empty, the function checks only whether a required
 * token is present.
 *
 * @returns the holder of the token; undefined if the request has no token, or if `rights` is empty
 * @throws Refusal; DeputeError if the authoriser is unavailable
 */
export async function admitRights(
  { authoriser, requireToken }: Pick<GateOptions, "authoriser" | "requireToken">,
  { rights, proved, name }: NeededRights,
  presentation: Presentation | undefined,
): Promise<ProvenHolder | undefined> {
  const [right] = rights;
  if (presentation === undefined) {
    if (requireToken) throw denialOf(NO_TOKEN, right);
    return undefined;
  }
  if (right === undefined) return undefined;
  const digest = digestOf(proved);
  const verify = async () =>
    authoriser.verify(await createPresented(presentation, proved), rights, digest, name);
  let verdict = await verify();
  // A holder session ends with the process that opened it, so a call in it may need one more proof.
  if (isProofInvalid(verdict) && presentation.loseSession?.() === true) verdict = await verify();
  if (!verdict.ok) throw denialOf(verdict.denial, right);
  const { principal, blocks } = verdict;
  return { principal, blocks };
}

function isProofInvalid(verdict: Verdict): boolean {
  return !verdict.ok && verdict.denial.type === DenialType.INVALID_PROOF;
}

/**
 * Admits a request that the server sends to the client during an admitted call. The proof of that call is valid only
 * once, and has been used. So this function checks only whether the token grants the required capabilities.
 *
 * @throws Refusal; DeputeError if the authoriser is unavailable
 */
export async function admitWish(
  options: GateOptions,
  gatedRequest: GatedRequest,
  presentation: Presentation | undefined,
): Promise<void> {
  const { right, rights } = await needed(options, gatedRequest, presentation);
  if (presentation === undefined) return;
  const granted = await options.authoriser.grants(presentation.token);
  if (!granted.ok) throw denialOf(granted.denial, right);
  const { capabilities } = granted;
  const lackingRight = lacksRight(capabilities, rights);
  if (lackingRight === undefined) return;
  const list = create(CapabilityListSchema, {
    capabilities: capabilities.map(({ namespace, action, resource }) => ({ namespace, action, resource })),
  });
  throw denialOf({ type: DenialType.CAPABILITY_NOT_GRANTED, granted: list }, lackingRight);
}

/** Returns the first required capability that `capabilities` do not grant; undefined if they grant all. */
export function lacksRight(capabilities: readonly Right[], rights: readonly Right[]): Right | undefined {
  return rights.find((each) => !capabilities.some((capability) => grants(capability, each)));
}

/** Returns the capabilities that a request needs: at least one. Throws Refusal. */
export async function neededRights(
  options: GateOptions,
  gatedRequest: GatedRequest,
  presentation: Presentation | undefined,
): Promise<readonly Right[]> {
  return (await needed(options, gatedRequest, presentation)).rights;
}

/** Returns the capabilities that a call needs: at least one. Throws Refusal. */
async function needed(
  { requireToken, realPath }: GateOptions,
  { rule, args, name }: GatedRequest,
  presentation: Presentation | undefined,
) {
  if (presentation === undefined && requireToken) {
    throw denialOf(NO_TOKEN, rule && barely(rule));
  }
  if (rule === undefined) throw unmapped(name);
  const { namespace, action } = rule;
  const found = resourceOf(rule, args);
  if (!found.ok) throw unusable(rule, found.detail);
  const rights: Right[] = [];
  for (const requestedResource of found.resources) {
    const resource = found.needsRealPath ? await realPath(requestedResource) : requestedResource;
    if (resource === undefined) throw unusable(rule, "the symbolic links of the path cannot be resolved");
    if (resource === "" || resource.length > MAX_RESOURCE_CHARS)
      throw unusable(rule, "the resource must have 1 to 1024 characters");
    rights.push({ namespace, action, resource });
  }
  const [right] = rights;
  if (right === undefined) throw unusable(rule, "the arguments name no resource");
  return { rule, right, rights };
}

/**
 * Returns the error for a request that uses a list entry, such as a tool, with a changed definition. The definition has
 * changed since the caller listed the entry.
 */
export function otherDefinition(detail: string, { right }: Admitted): Error {
  return denialOf({ type: DenialType.CAPABILITY_NOT_GRANTED, detail }, right);
}

/** The error for a tool that the manifest of the caller's agent does not name. */
export function notBound(right: Right): Error {
  const detail = "the agent's mcp_bindings do not allow the tool";
  return denialOf({ type: DenialType.CAPABILITY_NOT_GRANTED, detail }, right);
}

/** The error for a call whose cost exceeds the token's budget. */
export function overBudget(denial: DenialReason, right: Right): Error {
  return denialOf(denial, right);
}

/**
 * Returns the digest of the arguments. Throws Refusal for arguments without a canonical form, such as a lone surrogate,
 * because no proof can cover them.
 */
function digestOf(args: unknown): string {
  try {
    return argumentsDigest(args);
  } catch (thrown) {
    if (!(thrown instanceof CanonicalError)) throw thrown;
    const data = { reason: "INVALID_REQUEST", detail: "the arguments have no canonical form (RFC 8785)" };
    throw new Refusal(INVALID_PARAMS, "Invalid params", data);
  }
}

function unusable(rule: CallRule, detail: string): Error {
  return denialOf({ type: DenialType.INVALID_RESOURCE, detail }, barely(rule));
}

/**
 * Returns the capability that a rule requires, for error messages. If the resource depends on the call's arguments, the
 * returned resource is `*`.
 */
function barely({ namespace, action, resource }: CallRule): Right {
  return { namespace, action, resource: resource.kind === "fixed" ? resource.value : "*" };
}
