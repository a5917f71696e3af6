import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "@depute/core";
import { CHALLENGE, HttpRefusal } from "@depute/service";
import { refusalIn } from "../../edge/fault.ts";
import { json, type MethodRoute } from "../../edge/route.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";

/** The prefix of a metadata path. The path of the protected resource itself follows the prefix. (RFC 9728 3.1) */
const METADATA = "/.well-known/oauth-protected-resource";

/**
 * Serves the metadata documents of Depute's own tools, and of the MCP servers that require a login (RFC 9728; MCP,
 * Authorization).
 *
 * @param needsLogin returns whether the server with this name requires a login
 */
export function metadataRoutes(
  needsLogin: (server: string) => boolean,
  deps: WireDeps,
): readonly MethodRoute[] {
  const route = (place: string): MethodRoute => ({
    method: "GET",
    path: `${METADATA}${place}`,
    async answer({ parameters: { server } }) {
      const path = server === undefined ? "/mcp" : `/mcp/${server}`;
      const issuers = deps.issuers();
      const isKnown = server === undefined || needsLogin(server);
      if (issuers.length === 0 || !isKnown) throw noLogin(path);
      return json(metadataOf(`${deps.publicUrl}${path}`, issuers));
    },
  });
  return [route("/mcp"), route("/mcp/{server}")];
}

/** Returns the error for the metadata of a path that asks for no login. */
function noLogin(path: string): HttpRefusal {
  const message = `${path.slice(0, 200)} asks for no login; a login needs a configured issuer`;
  const metadata = { method: `${METADATA}${path}`.slice(0, 200) };
  return new HttpRefusal(404, ErrorReason.UNKNOWN_METHOD, message, { metadata });
}

/** Returns the metadata of a resource. (RFC 9728 section 2) */
function metadataOf(resource: string, issuers: readonly string[]): JsonObject {
  return {
    resource,
    authorization_servers: [...issuers],
    bearer_methods_supported: ["header"],
  };
}

/**
 * Returns the `WWW-Authenticate` header of a 401 answer, which contains the address of the resource's metadata. (RFC
 * 9728 section 5.1) If no issuers are configured, the header contains only the names of the schemes.
 */
export function challengeHeaders(
  path: string,
  thrown: unknown,
  { publicUrl, issuers }: WireDeps,
): Readonly<Record<string, string>> {
  if (issuers().length === 0) return CHALLENGE;
  // States `invalid_token` if the client sent an invalid login token, so that the client requests a new one from the
  // issuer. (RFC 6750 section 3.1)
  const error = refusalIn(thrown).metadata.fault === undefined ? "" : ', error="invalid_token"';
  const challenge = `Bearer resource_metadata="${publicUrl}${METADATA}${path}"${error}, DPoP`;
  return { "www-authenticate": challenge };
}
