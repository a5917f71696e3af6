const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Whether a request comes from no page, or from a page of the platform's own address. What a page of another site could
 * be made to send does not count (MCP, Streamable HTTP; RFC 6455 section 10.2). The host that the request names says
 * nothing: whoever owns a name can let it lead here.
 */
export function isOwnOrigin(origin: string | undefined, publicUrl: string): boolean {
  if (origin === undefined) return true;
  const [from, own] = [URL.parse(origin), new URL(publicUrl)];
  if (from === null) return false;
  return (
    from.host === own.host ||
    (LOOPBACK.has(from.hostname) && LOOPBACK.has(own.hostname) && from.port === own.port)
  );
}
