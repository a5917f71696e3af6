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

/** The prefix of a reference to evidence from another session. Depute chose it, because ASP defines no form. */
const PREFIX = "evidence:";
/** Maximum number of `registryConfirmed` values that evidence copies from a result. */
const MAX_CONFIRMATIONS = 100;
/** Maximum nesting depth in a result down to which `registryConfirmed` values are collected. */
const MAX_DEPTH = 4;

/** The place of evidence: the session and the delegation from which the evidence comes. */
export interface EvidencePlace {
  readonly sessionId: string;
  readonly delegationId: string;
}

/** Writes a reference to evidence, as it appears in the `references` of an INFORM. */
export function evidenceReference({ sessionId, delegationId }: EvidencePlace): string {
  return `${PREFIX}${sessionId}/${delegationId}`;
}

/** Returns the references to evidence of other sessions that a message contains. */
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
 * Returns a delegate's report as portable evidence: the delegate as verifier, the delegation, the time of the report,
 * and the `registryConfirmed` values in its result. Returns undefined if there is no report. (ASP "Cross-Session
 * References")
 *
 * @param delegateMessage the message that created the delegation
 * @param report the message with the delegate's report
 */
export function evidenceOf(
  session: Session,
  delegationId: string,
  delegateMessage: Envelope,
  report: Entry & { readonly ordinal: number },
): Evidence | undefined {
  const delegation = objectOf(session, delegationId);
  const verifier = delegation?.target === undefined ? undefined : partyOf(session, delegation.target);
  const bodyKind = report.envelope.content?.body?.kind;
  if (delegation?.result === undefined || verifier === undefined || bodyKind?.case !== "inform")
    return undefined;
  const { data } = bodyKind.value;
  return create(EvidenceSchema, {
    sessionId: session.sessionId,
    delegationId,
    verifier: verifier.agentId,
    delegator: delegation.author,
    verifiedAt: report.envelope.timestamp,
    scope: delegateBody(delegateMessage).scope,
    ...findEvidence(data),
    signingPublicKey: verifier.key,
    report: {
      ordinal: report.ordinal,
      receivedAt: formatTime(report.receiveMs),
      envelope: report.envelope,
    },
  });
}

/**
 * Whether the verifier's signature of the evidence is valid. The check is offline. The check does not prove that the
 * key belongs to the verifier, unless `keyOf` is present.
 *
 * @param keyOf returns the trusted key of an agent, base64url; if absent, the key in the evidence is accepted
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
  const bodyKind = envelope.content?.body?.kind;
  const isReport =
    envelope.performative === Performative.INFORM &&
    bodyKind?.case === "inform" &&
    bodyKind.value.informType === RESULT_TYPE &&
    bodyKind.value.references?.values.includes(delegationId) === true;
  if (!isReport) return false;
  const isSame =
    envelope.sessionId === sessionId &&
    envelope.sender?.agentId === verifier &&
    envelope.timestamp === verifiedAt;
  return (
    isSame &&
    equals(EvidenceSchema, evidence, { ...evidence, ...findEvidence(bodyKind.value.data) }) &&
    (bodyKind.value.data === undefined) === (result === undefined)
  );
}

/** Returns the result in a report's data, and the `registryConfirmed` values that the data contains. */
function findEvidence(data: Value | undefined) {
  return { ...(data === undefined ? {} : { result: data }), confirmations: confirmationsOf(data) };
}

function delegateBody({ content }: Envelope): DelegateBody {
  const body = content?.body?.kind;
  return body?.case === "delegate" ? body.value : create(DelegateBodySchema);
}

/**
 * Returns the values of the `registryConfirmed` members in a result. Each key is the path of the enclosing object,
 * joined by dots.
 */
function confirmationsOf(data: Value | undefined): Record<string, boolean> {
  const statuses: [string, boolean][] = [];
  const collectStatuses = (value: Value | undefined, path: string, depth: number): void => {
    if (value?.kind.case !== "structValue" || depth > MAX_DEPTH) return;
    for (const [name, member] of Object.entries(value.kind.value.fields)) {
      if (name !== "registryConfirmed")
        collectStatuses(member, path === "" ? name : `${path}.${name}`, depth + 1);
      else if (member.kind.case === "boolValue") statuses.push([path, member.kind.value]);
    }
  };
  collectStatuses(data, "", 0);
  return Object.fromEntries(statuses.slice(0, MAX_CONFIRMATIONS));
}
