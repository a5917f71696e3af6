import { test } from "vitest";
import type { Json, TestPlatform } from "../../gateway/platform.ts";

/**
 * Defines the test of one or more MUST requirements of A2A 1.0.1. The test's name begins with their numbers;
 * list.test.ts contains the whole list.
 */
export function must(numbers: readonly number[], name: string, run: () => Promise<void>): void {
  test(`${numbers.map((number) => `M${number}`).join(", ")}: ${name}`, run);
}

/** The service parameter that names the version. */
export const VERSION = { "a2a-version": "1.0" };

/** A message of the user with the text `hello`, in its JSON form. */
export const HELLO = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };

/** The setting that permits webhooks of receivers on this machine. */
export const HOSTS = ["--a2a-webhook-hosts", "127.0.0.1"];

/** Posts a JSON-RPC call to an agent without any client library. Returns the response and its body. */
export async function call(
  platform: TestPlatform,
  method: string,
  params: object,
  headers: Record<string, string> = {},
): Promise<{ response: Response; body: Json }> {
  const message = { jsonrpc: "2.0", id: "call-1", method, params };
  const response = await platform.post("/a2a/worker", message, { ...VERSION, ...headers });
  return { response, body: await response.json() };
}
