import type { AuthorityBundle } from "./authority-bundle.ts";

/** The result of one check of a bundle. */
export interface BundleCheck {
  readonly name:
    | "form"
    | "signature"
    | "proofs"
    | "blocks"
    | "token"
    | "revocations"
    | "attestation"
    | "log"
    | "receipt"
    | "tool_call";
  readonly ok: boolean;
  /** A text for people: the faulty member and its fault. If the check passed, what the check found. */
  readonly detail: string;
}

/**
 * Returns the result of a check. The check passes if `fault` is undefined. The result's text is `fault`, or `fine`
 * if the check passes.
 */
export function check(name: BundleCheck["name"], fault: string | undefined, fine: string): BundleCheck {
  return { name, ok: fault === undefined, detail: fault ?? fine };
}

/**
 * Checks that a statement has the subject that its kind requires. Returns no check for the kinds delegation, task
 * and token, or for an attestation that is present.
 */
export function subjectChecks(bundle: AuthorityBundle): BundleCheck[] {
  switch (bundle.statement.kind) {
    case "receipt":
      return [check("receipt", receiptFault(bundle), "it is the receipt of the statement")];
    case "tool_call":
      return [check("tool_call", toolCallFault(bundle), "the decisions are about these blocks")];
    case "attestation":
      return bundle.attestation === undefined ? [check("attestation", "attestation: missing", "")] : [];
    default:
      return [];
  }
}

function receiptFault({ statement, receipt }: AuthorityBundle): string | undefined {
  const { receipt: stated, subjectId, principal, proofs } = statement;
  if (receipt === undefined || stated === undefined) return "receipt: missing";
  if (proofs === undefined) return "proofs: missing";
  if (receipt.receipt_id !== subjectId) return "receipt.receipt_id: not the subject of the statement";
  if (receipt.request_id !== stated.requestId) return "receipt.request_id: another request";
  return principal === stated.buyer ? undefined : "receipt.buyer: not the holder of the authority";
}

function toolCallFault({ statement }: AuthorityBundle): string | undefined {
  const { toolCall, blocks } = statement;
  if (toolCall === undefined) return "toolCall: missing";
  const { revocationIds, decisions, allowed } = toolCall;
  const isSame =
    revocationIds.length === blocks.length &&
    blocks.every(({ revocationId }, i) => revocationIds[i] === revocationId);
  if (!isSame) return "toolCall.revocationIds: other blocks than the statement";
  if (decisions.length === 0) return "toolCall.decisions: none";
  const isAllowed = decisions.every((decision) => decision.allowed);
  return allowed === isAllowed ? undefined : "toolCall.allowed: not what the decisions say";
}
