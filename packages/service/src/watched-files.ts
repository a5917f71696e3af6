import type { CommonSettings } from "./common-settings.ts";
import { Identities, type IdentitiesOptions } from "./identities/identities.ts";
import { Certificates } from "./tls/certificates.ts";

/**
 * Opens the files that are read again when they change.
 *
 * @throws SettingsError when one is malformed; then none stays open
 */
export function openWatched(common: CommonSettings, deps: Omit<IdentitiesOptions, "path">) {
  const { timers, log } = deps;
  const certificates = Certificates.open({ settings: common, timers, log });
  try {
    return { certificates, identities: Identities.open({ path: common.identitiesFile, ...deps }) };
  } catch (error) {
    certificates.close();
    throw error;
  }
}
