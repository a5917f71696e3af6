/** The host in the URL of a request whose authority is no URL host. */
const UNNAMED = "unnamed.invalid";

/**
 * The host to put in a request's URL for its `:authority` or `Host` header. gRPC clients send the target of their
 * resolver, such as `team%2Fsvc`, which no URL can hold.
 *
 * @returns the authority itself, or a placeholder
 */
export function hostOfUrl(authority: string): string {
  return URL.canParse(`http://${authority}`) ? authority : UNNAMED;
}
