/** The credentials that the console presents. A platform on an open loopback needs none. */
export type Credentials =
  | { readonly kind: "none" }
  | { readonly kind: "secret"; readonly secret: string }
  | {
      readonly kind: "key";
      /** The seed of the caller's Ed25519 key, base64url. */
      readonly seed: string;
      /**
       * The token that the caller presents. Its last delegatee is the principal of the key. Empty if the caller
       * presents only the key.
       */
      readonly token: string;
    };

/**
 * The name under which the tab's session storage contains the credentials. The browser deletes this storage when the
 * tab closes.
 */
const PLACE = "depute.credentials";

/** Returns the stored credentials. If the storage has no readable credentials, their kind is `none`. */
export function readCredentials(storage: Storage = sessionStorage): Credentials {
  try {
    const stored = JSON.parse(storage.getItem(PLACE) ?? "null") as Credentials | null;
    return stored ?? { kind: "none" };
  } catch {
    return { kind: "none" };
  }
}

export function storeCredentials(credentials: Credentials, storage: Storage = sessionStorage): void {
  if (credentials.kind === "none") storage.removeItem(PLACE);
  else storage.setItem(PLACE, JSON.stringify(credentials));
}
