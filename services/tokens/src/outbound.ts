/** Milliseconds that another platform has to answer in. */
const TIMEOUT_MS = 10_000;
/** Bytes of an answer that are read. */
const MAX_BYTES = 4 * 1024 * 1024;

export type Fetch = typeof globalThis.fetch;

/** What another platform answered. */
export interface OutboundAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * One request to an address that configuration names. Redirects are not followed, since they would lead elsewhere; the
 * time and the size of the answer are bounded. Throws when there is no answer, or one that is too long.
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
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
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
