import { create } from "@bufbuild/protobuf";
import { type DenialReason, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { CapabilityListSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { CanonicalError } from "@depute/core";
import type { Authoriser } from "./authoriser.ts";
import { argumentsDigest } from "./digest.ts";
import { type Presentation, present } from "./presentation.ts";
import type { Asked } from "./rules/methods.ts";
import { denialOf, INVALID_PARAMS, Refusal, unmapped } from "./rules/refusal.ts";
import { resourceOf } from "./rules/resource.ts";
import type { CallRule } from "./rules/tool-map.ts";
import { grants, type Right } from "./rules/visible.ts";

const NO_CAPABILITIES = create(CapabilityListSchema, {});
/** Longer ones are no resources (DelegateOS 10.2). */
const MAX_RESOURCE_CHARS = 1024;

/** A call that may be made. */
export interface Admitted {
  readonly rule: CallRule;
  /** The right that is named where something is said of the call: of several resources the first. */
  readonly right: Right;
  /** Whose token it is; undefined for a call that needed none. */
  readonly principal?: string;
}

export interface GateOptions {
  readonly authoriser: Authoriser;
  readonly requireToken: boolean;
  /** Follows the links of a path, for rules of form `real-path`; undefined for a path that cannot be followed. */
  realPath(path: string): Promise<string | undefined>;
}

/**
 * Lets a call in or throws a Refusal. The decision is about the very arguments that are forwarded, and about this call
 * alone: nothing of it is kept.
 *
 * @throws Refusal; DeputeError when nobody can be asked
 */
export async function admit(
  options: GateOptions,
  asked: Asked,
  presentation: Presentation | undefined,
): Promise<Admitted> {
  const { rule, right, rights } = await needed(options, asked, presentation);
  if (presentation === undefined) return { rule, right };
  const digest = digestOf(asked.args);
  const verdict = await options.authoriser.verify(await present(presentation, asked.args), rights, digest);
  if (!verdict.ok) throw denialOf(verdict.denial, right);
  return { rule, right, principal: verdict.principal };
}

/**
 * Lets in what a server wants of the client before it goes on with a call that was let in. That call's proof has shown who
 * holds the token, and counts once; what the token grants by now is asked again.
 *
 * @throws Refusal; DeputeError when nobody can be asked
 */
export async function admitWish(
  options: GateOptions,
  asked: Asked,
  presentation: Presentation | undefined,
): Promise<void> {
  const { right, rights } = await needed(options, asked, presentation);
  if (presentation === undefined) return;
  const granted = await options.authoriser.grants(presentation.token);
  if (!granted.ok) throw denialOf(granted.denial, right);
  const { capabilities } = granted;
  const lacking = rights.find((each) => !capabilities.some((capability) => grants(capability, each)));
  if (lacking === undefined) return;
  const list = create(CapabilityListSchema, {
    capabilities: capabilities.map(({ namespace, action, resource }) => ({ namespace, action, resource })),
  });
  throw denialOf({ type: DenialType.CAPABILITY_NOT_GRANTED, granted: list }, lacking);
}

/** The rights that a call needs: one or more. */
async function needed(
  { requireToken, realPath }: GateOptions,
  { rule, args, name }: Asked,
  presentation: Presentation | undefined,
) {
  if (presentation === undefined && requireToken) {
    const nothing = { type: DenialType.CAPABILITY_NOT_GRANTED, granted: NO_CAPABILITIES };
    throw denialOf({ ...nothing, detail: "the call has no token" }, rule && barely(rule));
  }
  if (rule === undefined) throw unmapped(name);
  const { namespace, action } = rule;
  const found = resourceOf(rule, args);
  if (!found.ok) throw unusable(rule, found.detail);
  const rights: Right[] = [];
  for (const named of found.resources) {
    const resource = found.needsRealPath ? await realPath(named) : named;
    if (resource === undefined) throw unusable(rule, "the path cannot be followed");
    if (resource === "" || resource.length > MAX_RESOURCE_CHARS)
      throw unusable(rule, "too short or too long");
    rights.push({ namespace, action, resource });
  }
  const [right] = rights;
  if (right === undefined) throw unusable(rule, "no resource");
  return { rule, right, rights };
}

/** The denial of a request whose definition is not what its caller was shown. */
export function otherDefinition(detail: string, { right }: Admitted): Error {
  return denialOf({ type: DenialType.CAPABILITY_NOT_GRANTED, detail }, right);
}

/** The refusal of a caller whose agent's manifest does not name the tool. */
export function notBound(right: Right): Error {
  const detail = "the agent's mcp_bindings do not allow the tool";
  return denialOf({ type: DenialType.CAPABILITY_NOT_GRANTED, detail }, right);
}

/** The refusal of a call that the token's budget does not allow. */
export function overBudget(denial: DenialReason, right: Right): Error {
  return denialOf(denial, right);
}

/** What has no canonical form, as half of a surrogate pair, cannot be proved. */
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

/** The right without a resource that is worth telling. */
function barely({ namespace, action, resource }: CallRule): Right {
  return { namespace, action, resource: resource.kind === "fixed" ? resource.value : "*" };
}
