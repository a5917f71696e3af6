export { decodeBase64Url, encodeBase64Url } from "./base64url.ts";
export { CanonicalError, canonicalBytes, canonicalJson, MAX_CANONICAL_DEPTH } from "./canonical.ts";
