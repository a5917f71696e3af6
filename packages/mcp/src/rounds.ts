import { isObject, randomUuid } from "@depute/core";
import { type Declared, missingCapability } from "./rules/client-capabilities.ts";
import { INTERNAL_ERROR, Refusal } from "./rules/refusal.ts";

/** Maximum number of rounds in one call. */
const MAX_ROUNDS = 8;
/** Maximum number of requests in one round. */
const MAX_REQUESTS = 32;

/**
 * A client of a revision before 2026-07-28. The proxy forwards a server's requests to this client during a
 * call.
 */
export interface AskedClient {
  readonly capabilities: Declared | undefined;
  /** Sends a request to the client, and returns its result. Rejects if the client refuses. */
  ask(method: string, params: Record<string, unknown>): Promise<unknown>;
}

type Result = Record<string, unknown>;

export interface RoundsOptions {
  readonly client: AskedClient;
  /** Decides whether the requests of a result may reach the client. Throws Refusal. */
  admit(result: Result): Promise<void>;
  /** Repeats the call with the client's answers. */
  again(answers: { inputResponses?: Result; requestState?: unknown }): Promise<Result>;
  /** Cancels the call of a result that requires input, after a failure between two rounds. */
  abandon(result: Result): void;
}

/**
 * Delivers a modern server's input requests to a client whose revision does not support them. Each input request
 * becomes a separate request on the call's stream. Then the proxy repeats the call with the client's answers (MCP
 * 2026-07-28, multi-round-trip requests).
 *
 * @returns the first result that requires no input
 * @throws Refusal if the client lacks a capability, or the server exceeds MAX_ROUNDS or MAX_REQUESTS; the errors of
 * `admit`, `again` and the client's `ask`
 */
export async function fulfil(first: Result, options: RoundsOptions): Promise<Result> {
  let result = first;
  for (let round = 0; result.resultType === "input_required"; round++) {
    const answers = await answersTo(result, round, options).catch((thrown: unknown) => {
      options.abandon(result);
      throw thrown;
    });
    result = await options.again(answers);
  }
  return result;
}

async function answersTo(result: Result, round: number, { client, admit }: RoundsOptions) {
  if (round >= MAX_ROUNDS) throw tooMuch(`more than ${MAX_ROUNDS} rounds`);
  await admit(result);
  const requests = isObject(result.inputRequests) ? Object.entries(result.inputRequests) : [];
  if (requests.length > MAX_REQUESTS) throw tooMuch(`more than ${MAX_REQUESTS} requests at once`);
  const answers = await Promise.all(
    requests.map(async ([key, request]) => [key, await answerOf(client, request)] as const),
  );
  const { requestState } = result;
  return {
    ...(requests.length === 0 ? {} : { inputResponses: Object.fromEntries(answers) }),
    ...(requestState === undefined ? {} : { requestState }),
  };
}

async function answerOf({ capabilities, ask }: AskedClient, request: unknown): Promise<unknown> {
  const { method, params } = (request ?? {}) as { method?: unknown; params?: unknown };
  const name = String(method);
  const lacking = missingCapability(name, params, capabilities);
  if (lacking !== undefined) {
    const detail = `the client did not declare the capability that ${name} needs`;
    const data = { reason: "DEPENDENCY_UNAVAILABLE", detail, requiredCapabilities: lacking as never };
    throw new Refusal(INTERNAL_ERROR, "the MCP server requests input that the client cannot provide", data);
  }
  const members = isObject(params) ? params : {};
  // Revision 2025-11-25 requires an id for an elicitation by address. Later revisions have no such id.
  return ask(name, members.mode === "url" ? { ...members, elicitationId: randomUuid() } : members);
}

function tooMuch(detail: string): Refusal {
  const data = { reason: "LIMIT_EXCEEDED", detail: `the server requests input in ${detail}` };
  return new Refusal(INTERNAL_ERROR, "the MCP server failed", data);
}
