/**
 * The header of every response with HTTP status 401, which names the ways to authenticate (RFC 9110 11.6.1, RFC 9449
 * 7.1).
 */
export const CHALLENGE = { "www-authenticate": "DPoP, Bearer" } as const;
