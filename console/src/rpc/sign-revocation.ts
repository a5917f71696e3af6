import type { MessageInitShape } from "@bufbuild/protobuf";
import { type RevocationEntrySchema, RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { decodeBase64Url } from "@depute/core";
import { createRevocation, keypairFromSeed, portableEngine } from "@depute/dct";

/**
 * Signs the revocation of a block and of all blocks below it.
 *
 * @param seed the seed of the revoker's key, base64url
 * @throws RangeError for a seed that is not 32 bytes in base64url
 */
export function signedRevocation(
  seed: string,
  revocationId: string,
): MessageInitShape<typeof RevocationEntrySchema> {
  const bytes = decodeBase64Url(seed.trim());
  if (bytes?.length !== 32) throw new RangeError("the key is not valid: sign in again with its seed");
  const keypair = keypairFromSeed(portableEngine, bytes);
  const entry = createRevocation(portableEngine, revocationId, "chain", keypair);
  return { ...entry, scope: RevocationScope.CHAIN };
}
