import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { A2A_BINDINGS, type A2aInterface, a2aInterfaceOf, isObject } from "@depute/core";

/** The address of an agent that serves A2A itself. */
export interface A2aAddress extends A2aInterface {
  /** Whether the agent's card declares streams. Otherwise the platform polls the task. */
  readonly streaming: boolean;
}

const A2A = "a2a:";

/**
 * Encodes the address at which an agent accepts tasks as one text; empty for none. The text of a NEKTE endpoint is its
 * URL. The text of an A2A interface is `a2a:` and its members as JSON, which {@link readA2aAddress} decodes.
 */
export function addressOf({ nekte, a2aCard }: Pick<Agent, "nekte" | "a2aCard">): string {
  if (a2aCard === undefined) return nekte?.endpoint ?? "";
  const found = a2aInterfaceOf(a2aCard.supportedInterfaces);
  if (found === undefined) return "";
  const address: A2aAddress = { ...found, streaming: a2aCard.capabilities?.streaming ?? false };
  return A2A + JSON.stringify(address);
}

/** Decodes the text of an A2A interface; undefined for a NEKTE endpoint. */
export function readA2aAddress(text: string): A2aAddress | undefined {
  if (!text.startsWith(A2A)) return undefined;
  const address: unknown = JSON.parse(text.slice(A2A.length));
  return isAddress(address) ? address : undefined;
}

/** Returns the URL of an encoded address of either protocol. */
export function urlOf(text: string): string {
  return readA2aAddress(text)?.url ?? text;
}

function isAddress(value: unknown): value is A2aAddress {
  if (!isObject(value)) return false;
  const { binding, url, tenant, streaming } = value;
  return (
    (A2A_BINDINGS as readonly unknown[]).includes(binding) &&
    typeof url === "string" &&
    typeof tenant === "string" &&
    typeof streaming === "boolean"
  );
}
