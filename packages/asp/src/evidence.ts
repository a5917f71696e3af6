import { create, equals } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { type DelegateBody, DelegateBodySchema } from "@depute/contracts/asp/v0/action_pb";
import { type Envelope, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { type Evidence, EvidenceSchema } from "@depute/contracts/asp/v0/evidence_pb";
import { decodeBase64Url, formatTime } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { holdsIntegrity } from "./integrity.ts";
import { objectOf, partyOf, type Session } from "./session.ts";
import { RESULT_TYPE } from "./subject.ts";
import type { Entry } from "./transcript.ts";

/** What a reference to evidence of another session begins with. Depute's choice, because the text gives it no form. */
const PREFIX = "evidence:";
/** Members of a result whose registry status is noted. */
const MAX_CONFIRMATIONS = 100;
/** How deep they are looked for. */
const MAX_DEPTH = 4;

/** Where evidence stands: a delegation of a session. */
export interface EvidencePlace {
  readonly sessionId: string;
  readonly delegationId: string;
}

/** How an INFORM refers to evidence, in its `references`. */
export function evidenceReference({ sessionId, delegationId }: EvidencePlace): string {
  return `${PREFIX}${sessionId}/${delegationId}`;
}

/** The evidence of other sessions that a message refers to. */
export function evidenceReferences({ content }: Envelope): EvidencePlace[] {
  const body = content?.body?.kind;
  if (body?.case !== "inform") return [];
  return (body.value.references?.values ?? []).flatMap((reference) => {
    const at = reference.indexOf("/");
    if (!reference.startsWith(PREFIX) || at < 0) return [];
    return [{ sessionId: reference.slice(PREFIX.length, at), delegationId: reference.slice(at + 1) }];
  });
}

/**
 * What a delegate reported, as it can be shown elsewhere: who found it, under which delegation, when, and what the
 * registries said. (ASP "Cross-Session References") undefined for a delegation without a report.
 *
 * @param asked the message that delegated
 * @param report the message that reported
 */
export function evidenceOf(
  session: Session,
  delegationId: string,
  asked: Envelope,
  report: Entry & { readonly ordinal: number },
): Evidence | undefined {
  const delegation = objectOf(session, delegationId);
  const verifier = delegation?.target === undefined ? undefined : partyOf(session, delegation.target);
  const said = report.envelope.content?.body?.kind;
  if (delegation?.result === undefined || verifier === undefined || said?.case !== "inform") return undefined;
  const { data } = said.value;
  return create(EvidenceSchema, {
    sessionId: session.sessionId,
    delegationId,
    verifier: verifier.agentId,
    delegator: delegation.author,
    verifiedAt: report.envelope.timestamp,
    scope: delegateBody(asked).scope,
    ...found(data),
    signingPublicKey: verifier.key,
    report: {
      ordinal: report.ordinal,
      receivedAt: formatTime(report.receiveMs),
      envelope: report.envelope,
    },
  });
}

/**
 * Whether evidence is what its verifier signed. It asks nobody: that the key is the verifier's own is to be known from
 * elsewhere.
 *
 * @param keyOf the key of an agent as the asker knows it, base64url
 */
export function verifyEvidence(
  engine: CryptoEngine,
  evidence: Evidence,
  keyOf?: (agentId: string) => string | undefined,
): boolean {
  const { report, sessionId, delegationId, verifier, verifiedAt, result } = evidence;
  const envelope = report?.envelope;
  const key = decodeBase64Url(evidence.signingPublicKey);
  if (envelope === undefined || key === undefined) return false;
  if (keyOf !== undefined && keyOf(verifier) !== evidence.signingPublicKey) return false;
  if (!holdsIntegrity(engine, envelope, key)) return false;
  const said = envelope.content?.body?.kind;
  const isReport =
    envelope.performative === Performative.INFORM &&
    said?.case === "inform" &&
    said.value.informType === RESULT_TYPE &&
    said.value.references?.values.includes(delegationId) === true;
  if (!isReport) return false;
  const isSame =
    envelope.sessionId === sessionId &&
    envelope.sender?.agentId === verifier &&
    envelope.timestamp === verifiedAt;
  return (
    isSame &&
    equals(EvidenceSchema, evidence, { ...evidence, ...found(said.value.data) }) &&
    (said.value.data === undefined) === (result === undefined)
  );
}

/** What a report's data says, as evidence has it. */
function found(data: Value | undefined) {
  return { ...(data === undefined ? {} : { result: data }), confirmations: confirmationsOf(data) };
}

function delegateBody({ content }: Envelope): DelegateBody {
  const body = content?.body?.kind;
  return body?.case === "delegate" ? body.value : create(DelegateBodySchema);
}

/** What the members of a result that name a registry status say: by the path of the member, with dots. */
function confirmationsOf(data: Value | undefined): Record<string, boolean> {
  const statuses: [string, boolean][] = [];
  const look = (value: Value | undefined, path: string, depth: number): void => {
    if (value?.kind.case !== "structValue" || depth > MAX_DEPTH) return;
    for (const [name, member] of Object.entries(value.kind.value.fields)) {
      if (name !== "registryConfirmed") look(member, path === "" ? name : `${path}.${name}`, depth + 1);
      else if (member.kind.case === "boolValue") statuses.push([path, member.kind.value]);
    }
  };
  look(data, "", 0);
  return Object.fromEntries(statuses.slice(0, MAX_CONFIRMATIONS));
}
