import type { AuthorityStatement, BundleCheck, BundleVerdict } from "@depute/dct";
import { EXIT } from "../exit-codes.ts";
import { oneLine } from "../print/safe-text.ts";
import type { Invocation } from "../table/command.ts";
import { readText } from "./files.ts";
import { write } from "./output.ts";
import { readSuccessions } from "./root-successions.ts";

/**
 * `depute verify-authority FILE`: checks a bundle of ExplainAuthority offline. @returns 0 if the bundle is valid,
 * otherwise 1
 */
export async function verifyAuthority({ values }: Invocation): Promise<number> {
  const { portableEngine, verifyAuthorityBundle } = await import("@depute/dct");
  const { followRootSuccessions } = await import("@depute/dct/transparency");
  const { succession } = values;
  const statements = succession === undefined ? [] : readSuccessions(readText(String(succession)));
  const roots = followRootSuccessions(portableEngine, keysOf(values.root), statements);
  const trusted = { roots, logs: keysOf(values.log) };
  const verdict = verifyAuthorityBundle(portableEngine, readText(String(values.FILE)), trusted);
  write([...verdict.checks.map(checkLine), ...statementLines(verdict)].map(oneLine).join("\n"));
  return verdict.ok ? EXIT.ok : EXIT.failed;
}

function keysOf(value: Invocation["values"][string] | undefined): ReadonlySet<string> {
  return new Set(Array.isArray(value) ? (value as readonly string[]) : []);
}

function checkLine({ name, ok, detail }: BundleCheck): string {
  return `${ok ? "ok    " : "FAILED"} ${name}: ${detail}`;
}

function statementLines({ ok, statement }: BundleVerdict): string[] {
  if (!ok || statement === undefined) return ["The bundle is not valid."];
  return authorityLines(statement);
}

/** Returns the lines about the receipt or the tool call of a statement; empty if the statement has neither. */
function useLines({ receipt, toolCall }: Pick<AuthorityStatement, "receipt" | "toolCall">): string[] {
  if (receipt !== undefined) return [`Receipt ${receipt.sequence} of the request ${receipt.requestId}.`];
  if (toolCall === undefined) return [];
  const { resource, allowed, decisions } = toolCall;
  return [
    `The call of ${resource} was ${allowed ? "allowed" : "denied"}.`,
    ...decisions.map((one) => `Decision ${one.sequence} of ${one.source} at ${one.time}: ${one.reason}.`),
  ];
}

function authorityLines({ kind, subjectId, principal, ...stated }: AuthorityStatement): string[] {
  const { onBehalfOf, blocks, time, explainTime, validThen, validNow } = stated;
  return [
    `The ${kind} ${subjectId}: authority of ${principal}.`,
    ...(onBehalfOf === undefined
      ? []
      : [`On behalf of ${onBehalfOf.subject} of ${onBehalfOf.issuer} (${onBehalfOf.principal}).`]),
    ...useLines(stated),
    ...blocks.map(({ delegator, delegatee, validityThen, validityNow, expireTime }, i) => {
      return `Block ${i}: ${delegator} to ${delegatee}, until ${expireTime}; then ${validityThen}, now ${validityNow}.`;
    }),
    `At ${time} it was ${validThen ? "valid" : "not valid"}; at ${explainTime} ${validNow ? "valid" : "not valid"}.`,
  ];
}
