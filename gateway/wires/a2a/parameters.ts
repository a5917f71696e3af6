import { DeputeError, ErrorReason } from "@depute/core";

/** The header, query parameter or metadata that states the version of A2A. (A2A 3.2.6) */
export const VERSION_PARAMETER = "A2A-Version";
/** The header or metadata that lists the activated extensions. (A2A 3.2.6) */
export const EXTENSIONS_PARAMETER = "A2A-Extensions";

/**
 * The header or metadata with the sequence of the event after which a subscription resumes. (docs/a2a.md, resumable
 * streams)
 */
export const AFTER_PARAMETER = "A2A-After-Sequence";

/** The version of A2A of a request that states no version. (A2A 3.6.2) */
const UNSTATED = "0.3";
const SUPPORTED = /^1\.0(\.\d+)?$/;
const MAX_VERSION = 32;

/** Maximum number of extensions in the list of a request. */
const MAX_EXTENSIONS = 32;

/**
 * Checks that the gateway supports the A2A version that a request states.
 *
 * @param stated the version that the request states; empty or undefined if the request states none
 * @throws DeputeError PROTOCOL_VERSION_UNSUPPORTED
 */
export function requireVersion(stated: string | null | undefined): void {
  const version = stated?.trim() || UNSTATED;
  if (SUPPORTED.test(version)) return;
  const shownVersion = version.slice(0, MAX_VERSION).toWellFormed();
  throw new DeputeError(
    ErrorReason.PROTOCOL_VERSION_UNSUPPORTED,
    `the version ${shownVersion} of A2A is not supported: send ${VERSION_PARAMETER}: 1.0`,
    { metadata: { version: shownVersion, supported: "1.0" } },
  );
}

/**
 * Returns the extensions that a request activates and the platform supports. Unknown extensions are ignored.
 * (A2A 4.6.2)
 */
export function activatedExtensions(
  stated: string | null | undefined,
  knownNames: ReadonlySet<string>,
): ReadonlySet<string> {
  const listed = (stated ?? "").split(",", MAX_EXTENSIONS).map((uri) => uri.trim());
  return new Set(listed.filter((uri) => knownNames.has(uri)));
}
