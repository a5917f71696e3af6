import type { CommonSettings } from "./common-settings.ts";
import { Identities, type IdentitiesOptions } from "./identities/identities.ts";
import { InternalSecrets } from "./internal-secrets.ts";
import { fileOfSecret } from "./settings.ts";
import { Certificates } from "./tls/certificates.ts";
import { WatchedCredentials } from "./watched-credentials.ts";

/**
 * Opens the files that the process reads again when they change.
 *
 * @throws SettingsError when a file cannot be used. Then the function watches no file
 */
export function openWatched(common: CommonSettings, deps: Omit<IdentitiesOptions, "path" | "credentials">) {
  const { timers, log } = deps;
  const { credentialsFile, identitiesFile } = common;
  const credentials = new WatchedCredentials({
    ...{ path: credentialsFile, identitiesPath: identitiesFile, timers, log },
  });
  let certificates: Certificates | undefined;
  try {
    certificates = Certificates.open({ settings: common, timers, log });
    const identities = Identities.open({ path: identitiesFile, credentials, ...deps });
    const internalSecrets = new InternalSecrets({
      ...{ text: common.internalSecret, path: fileOfSecret("internalSecret"), timers, log },
    });
    return { certificates, credentials, identities, internalSecrets };
  } catch (error) {
    certificates?.close();
    credentials.close();
    throw error;
  }
}
