/** The host that replaces an authority which cannot be the host of a URL. */
const UNNAMED = "unnamed.invalid";

/**
 * Returns the host for a request's URL, from its `:authority` or `Host` header. gRPC clients send the target of their
 * resolver as the authority, such as `team%2Fsvc`, which no URL can contain.
 *
 * @returns the authority itself, or a placeholder
 */
export function hostOfUrl(authority: string): string {
  return URL.canParse(`http://${authority}`) ? authority : UNNAMED;
}
