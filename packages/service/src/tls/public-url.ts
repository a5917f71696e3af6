/**
 * Returns a warning if the public URL and the listener have different schemes; otherwise undefined. A holder proof
 * names the public URL, so the platform refuses proofs for any other URL.
 *
 * @param publicUrl the setting; empty if the listener's own URL is the public URL
 * @param listenerUrl the URL that the gateway listens on
 */
export function publicUrlWarning(publicUrl: string, listenerUrl: string): string | undefined {
  if (publicUrl === "" || listenerUrl.startsWith("unix:")) return undefined;
  const expected = new URL(publicUrl).protocol;
  if (expected === new URL(listenerUrl).protocol) return undefined;
  return expected === "https:"
    ? "DEPUTE_PUBLIC_URL is https and the listener has no TLS: the platform accepts holder proofs only behind a proxy that terminates TLS"
    : "DEPUTE_PUBLIC_URL is http and the listener has TLS: holder proofs are bound to the public URL; write https";
}
