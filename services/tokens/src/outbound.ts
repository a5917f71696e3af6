/** Maximum accepted size of a response, in bytes. */
const MAX_BYTES = 4 * 1024 * 1024;

export type Fetch = typeof globalThis.fetch;

/** The response of another platform. */
export interface OutboundAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends one request to an address from the settings. A redirect is an error, because the settings do not name its
 * target.
 *
 * @throws Error if no response arrives, or if the response is longer than {@link MAX_BYTES}
 */
export async function request(
  fetch: Fetch,
  address: string,
  { body, signal }: { body?: string; signal: AbortSignal },
): Promise<OutboundAnswer> {
  const headers = {
    accept: "application/json",
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const response = await fetch(address, {
    ...{ method: body === undefined ? "GET" : "POST", headers, redirect: "error" },
    ...(body !== undefined && { body }),
    signal,
  });
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > MAX_BYTES) throw new Error(`the answer of ${address} is longer than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return { status: response.status, text: Buffer.concat(chunks).toString("utf8") };
}
