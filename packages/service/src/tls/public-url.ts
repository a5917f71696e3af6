/**
 * Returns a warning if the public URL and the address of the listener disagree; else undefined. Holder proofs are
 * bound to the public URL, so the platform refuses proofs for another address.
 *
 * @param publicUrl the setting; empty if the listener's address is public
 * @param listenerUrl the address that the gateway listens on
 */
export function publicUrlWarning(publicUrl: string, listenerUrl: string): string | undefined {
  if (publicUrl === "" || listenerUrl.startsWith("unix:")) return undefined;
  const expected = new URL(publicUrl).protocol;
  if (expected === new URL(listenerUrl).protocol) return undefined;
  return expected === "https:"
    ? "DEPUTE_PUBLIC_URL is https and the listener has no TLS: holder proofs hold only behind a proxy that terminates TLS"
    : "DEPUTE_PUBLIC_URL is http and the listener has TLS: holder proofs are bound to the public URL; write https";
}
