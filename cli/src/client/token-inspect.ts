import type { JsonObject } from "@bufbuild/protobuf";
import type { Capability, SignedJSONToken } from "@depute/dct";
import { CommandError } from "../exit-codes.ts";
import { usd } from "../print/cells.ts";
import { oneLine } from "../print/safe-text.ts";
import { layoutFor } from "../print/terminal.ts";
import { cut } from "../print/width.ts";
import type { Invocation } from "../table/command.ts";
import { connected } from "./connection.ts";
import { textOf } from "./files.ts";
import { type Form, isDocument, printDocument, write } from "./output.ts";

/** `depute tokens inspect TOKEN`. */
export async function inspectToken(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const { parsed, text, ids } = await tokenFrom(String(values.TOKEN));
  const verdict = values.offline === true ? undefined : await verdictOf(invocation, text, parsed);
  const form = values.output as Form;
  if (isDocument(form)) {
    const token = { ...parsed, revocationIds: ids } as unknown as JsonObject;
    await printDocument(form, verdict === undefined ? { token } : { token, verdict });
    return;
  }
  const { columns = Infinity } = layoutFor(process.stdout);
  const lines = [...chainLines(parsed, ids), ...verdictLines(verdict)];
  write(lines.map((line) => cut(oneLine(line), columns)).join("\n"));
}

/** Reads and parses a token. @throws CommandError if the text is not a token, or the file is too large */
export async function tokenFrom(argument: string) {
  const { parseToken, portableEngine, revocationIds } = await import("@depute/dct");
  const text = textOf(argument).trim();
  const result = parseToken(text);
  if (!result.ok) {
    const { type, detail = "" } = result.denial as { type: string; detail?: string };
    throw new CommandError(`the text is not a token (${type}: ${detail}); pass the token's text, or @FILE`);
  }
  return { text, parsed: result.token, ids: revocationIds(portableEngine, result.token) };
}

function verdictOf(invocation: Invocation, token: string, parsed: SignedJSONToken): Promise<JsonObject> {
  const { format } = parsed;
  const { contractId } = parsed.authority;
  return connected(invocation, (connection) =>
    connection.call("tokens", "inspectToken", { token: { token, format }, contractId }),
  );
}

/** Draws a token's chain: one box for each block, from the authority block to the holder's block. */
export function chainLines({ authority, attenuations }: SignedJSONToken, ids: readonly string[]): string[] {
  const first = [
    `block 0, signed by the root ${authority.issuer}`,
    `for        ${authority.delegatee}`,
    `grants     ${listed(authority.capabilities)}`,
    `budget     ${amount(authority.maxBudgetMicrocents)}`,
    `expires    ${authority.expiresAt}`,
    `may be attenuated ${authority.maxChainDepth} times`,
    `contract   ${authority.contractId}`,
    `delegation ${authority.delegationId}`,
    `revoked by ${ids[0] ?? ""}`,
  ];
  const others = attenuations.map((block, index) => [
    `block ${index + 1}, signed by ${block.attenuator}`,
    `for        ${block.delegatee}`,
    ...(block.allowedCapabilities === undefined
      ? []
      : [`attenuates to ${listed(block.allowedCapabilities)}`]),
    ...(block.maxBudgetMicrocents === undefined ? [] : [`budget     ${amount(block.maxBudgetMicrocents)}`]),
    ...(block.expiresAt === undefined ? [] : [`expires    ${block.expiresAt}`]),
    ...(block.maxChainDepth === undefined ? [] : [`may be attenuated ${block.maxChainDepth} times`]),
    `delegation ${block.delegationId}`,
    `revoked by ${ids[index + 1] ?? ""}`,
  ]);
  return [first, ...others].flatMap((lines, index) => [
    ...(index === 0 ? [] : ["   ▼"]),
    ...lines.map((line, at) => `${at === 0 ? "┌─" : at === lines.length - 1 ? "└─" : "│ "} ${line}`),
  ]);
}

function listed(capabilities: readonly Capability[]): string {
  if (capabilities.length === 0) return "nothing";
  return capabilities
    .map(({ namespace, action, resource }) => `${namespace}:${action}:${resource}`)
    .join(", ");
}

function amount(microcents: number): string {
  return `${microcents} microcents (${usd(microcents)})`;
}

function verdictLines(verdict: JsonObject | undefined): string[] {
  if (verdict === undefined) return [];
  const { scope, denial } = verdict as { scope?: JsonObject; denial?: JsonObject };
  if (denial !== undefined) {
    const type = String(denial.type ?? "").replace(/^DENIAL_TYPE_/, "");
    return ["", `The platform denies it: ${type.toLowerCase()}${denial.detail ? `, ${denial.detail}` : ""}.`];
  }
  const remaining = Number(scope?.remainingBudgetMicrocents ?? 0);
  return [
    "",
    `The platform accepts it; ${amount(remaining)} remain. The proof of its holder is not checked here.`,
  ];
}
