import { defineSettings, type Settings, SettingsError } from "@depute/service";
import { PUBLISHED_AHEAD_MS } from "./rules/jwt-keys.ts";
import { MAX_OVERLAP_MS } from "./rules/root-key.ts";

const KEYS = "Tokens: keys";
const PROOFS = "Tokens: holder proofs";
const REVOCATIONS = "Tokens: revocations";
const SPEND = "Tokens: spend";
const RECORDS = "Tokens: records";

/** The settings of the tokens service. */
export const tokensSettings = defineSettings({
  tokenEngine: {
    type: "string",
    choices: ["native", "portable"],
    default: "native",
    help: "the cryptographic engine: libsodium, or pure JavaScript where native code cannot run",
    group: KEYS,
  },
  rootKeyFile: {
    type: "string",
    default: "",
    help: "the platform's first root key, 32 bytes in base64url; empty: root.key in the data folder, created at the first start",
    group: KEYS,
  },
  keyMaxAge: {
    type: "duration",
    default: "0s",
    help: "age at which the service replaces a kept key; 0s: never",
    group: KEYS,
  },
  jwtKeyMaxAge: {
    type: "duration",
    default: "720h",
    help: "age at which the service replaces the key that signs projected tokens (JWT); 2h or more",
    group: KEYS,
  },
  rootKeyOverlap: {
    type: "duration",
    default: "0s",
    help: "how long tokens of a rotated root key stay valid, at most 2160h; 0s: the greatest lifetime of a token",
    group: KEYS,
  },
  trustedRoots: {
    type: "list",
    default: [],
    help: "principals besides the platform's own whose tokens are accepted",
    group: KEYS,
  },
  minters: {
    type: "list",
    default: [],
    help: "principals that may mint; on an open loopback a caller without credentials may mint, too",
    group: KEYS,
  },
  tokenMinLifetime: {
    type: "duration",
    default: "1s",
    help: "the least lifetime of a minted token",
    group: KEYS,
  },
  tokenMaxLifetime: {
    type: "duration",
    default: "24h",
    help: "the greatest lifetime of a minted or accepted token",
    group: KEYS,
  },
  clockSkew: {
    type: "duration",
    default: "30s",
    help: "the tolerated lead of an issuer's clock",
    group: KEYS,
  },
  holderProof: {
    type: "string",
    choices: ["required", "optional"],
    default: "required",
    help: "whether a token needs a proof of its holder; optional makes attenuations advisory",
    group: PROOFS,
  },
  maxSeenProofs: {
    type: "int",
    default: 1_000_000,
    min: 1,
    help: "the most remembered holder proofs; beyond it the service denies proofs",
    group: PROOFS,
  },
  revocationPoll: {
    type: "duration",
    default: "5s",
    help: "interval between reads of the revocation log without a wake-up",
    group: REVOCATIONS,
  },
  revocationMaxStaleness: {
    type: "duration",
    default: "150s",
    help: "age of the last read of the revocation log beyond which every token is denied",
    group: REVOCATIONS,
  },
  maxPendingRevocations: {
    type: "int",
    default: 100_000,
    min: 1,
    help:
      "revocations by keys that no recorded block, card or credential names, kept until their right can be checked or the " +
      "longest token life is over; one caller may have a tenth",
    group: REVOCATIONS,
  },
  maxDailyRevocations: {
    type: "int",
    default: 10_000,
    min: 1,
    help: "blocks that one principal may revoke within a day; the platform's root has no limit",
    group: REVOCATIONS,
  },
  revocationPeers: {
    type: "list",
    default: [],
    help: "addresses of delegateos/revoke endpoints that receive every revocation",
    group: REVOCATIONS,
  },
  revocationSources: {
    type: "list",
    default: [],
    help: "addresses of other platforms' revocation endpoints that the service polls",
    group: REVOCATIONS,
  },
  revocationSourcePoll: {
    type: "duration",
    default: "60s",
    help: "interval between two polls of a source",
    group: REVOCATIONS,
  },
  auditRetention: {
    type: "duration",
    default: "2160h",
    help: "retention of decisions; 0s: for ever",
    group: RECORDS,
  },
  auditors: {
    type: "list",
    default: [],
    help: "principals that may read the audit log",
    group: RECORDS,
  },
  delegationRetention: {
    type: "duration",
    default: "720h",
    help: "retention of delegations and blocks after their expiry; 0s: for ever",
    group: RECORDS,
  },
  spenders: {
    type: "list",
    default: [],
    help: "principals besides a token's holder that may reserve spend under it, for example services that execute its calls",
    group: SPEND,
  },
});

export type TokensSettings = Settings<typeof tokensSettings>;

/**
 * Refuses contradictory settings.
 *
 * @throws SettingsError
 */
export function assertSettings(settings: TokensSettings): void {
  const { revocationPoll, revocationMaxStaleness, revocationSourcePoll } = settings;
  for (const address of [...settings.revocationPeers, ...settings.revocationSources]) {
    if (/^https?:\/\//.test(address) && URL.canParse(address)) continue;
    throw new SettingsError(
      `DEPUTE_REVOCATION_PEERS and DEPUTE_REVOCATION_SOURCES must be http or https addresses, and ${address} is not`,
    );
  }
  const { tokenMinLifetime, tokenMaxLifetime } = settings;
  if (tokenMinLifetime > tokenMaxLifetime || tokenMaxLifetime === 0) {
    throw new SettingsError(
      "DEPUTE_TOKEN_MIN_LIFETIME must be at most DEPUTE_TOKEN_MAX_LIFETIME, which must not be 0",
    );
  }
  if (settings.rootKeyOverlap > MAX_OVERLAP_MS)
    throw new SettingsError("DEPUTE_ROOT_KEY_OVERLAP is at most 2160h");
  if (settings.jwtKeyMaxAge < 2 * PUBLISHED_AHEAD_MS)
    throw new SettingsError(
      "DEPUTE_JWT_KEY_MAX_AGE must be at least 2h, because a key is published 1h before it signs",
    );
  if (revocationSourcePoll < 1000)
    throw new SettingsError("DEPUTE_REVOCATION_SOURCE_POLL must be at least 1s");
  if (revocationPoll > 0 && revocationMaxStaleness >= 2 * revocationPoll) return;
  throw new SettingsError(
    "DEPUTE_REVOCATION_MAX_STALENESS must be at least twice DEPUTE_REVOCATION_POLL, which must not be 0: " +
      "otherwise one late read would deny every token",
  );
}
