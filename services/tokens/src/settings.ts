import { defineSettings, type Settings, SettingsError } from "@depute/service";

const KEYS = "Tokens: keys";
const PROOFS = "Tokens: holder proofs";
const REVOCATIONS = "Tokens: revocations";
const SPEND = "Tokens: spend";
const RECORDS = "Tokens: records";

/** The tokens service's own settings. */
export const tokensSettings = defineSettings({
  tokenEngine: {
    type: "string",
    choices: ["native", "portable"],
    default: "native",
    help: "cryptography: libsodium, or pure JavaScript where native code cannot run",
    group: KEYS,
  },
  rootKeyFile: {
    type: "string",
    default: "",
    help: "the platform's root key, 32 bytes in base64url; empty: root.key in the data folder, made at first start",
    group: KEYS,
  },
  masterKeyFile: {
    type: "string",
    default: "",
    help: "what kept keys are sealed with, 32 bytes in base64url; empty: master.key in the data folder",
    group: KEYS,
  },
  keyMaxAge: {
    type: "duration",
    default: "0s",
    help: "age at which a kept key is replaced by itself; 0s: never",
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
    help: "principals that may mint; on an open loopback a caller without credentials may as well",
    group: KEYS,
  },
  tokenMinLifetime: {
    type: "duration",
    default: "1s",
    help: "shortest life of a token that is minted",
    group: KEYS,
  },
  tokenMaxLifetime: {
    type: "duration",
    default: "24h",
    help: "longest life of a token that is minted or accepted",
    group: KEYS,
  },
  clockSkew: {
    type: "duration",
    default: "30s",
    help: "how far a token's issuer's clock may be ahead",
    group: KEYS,
  },
  holderProof: {
    type: "string",
    choices: ["required", "optional"],
    default: "required",
    help: "whether a token counts without a proof of its holder; optional makes attenuations advisory",
    group: PROOFS,
  },
  maxSeenProofs: {
    type: "int",
    default: 1_000_000,
    min: 1,
    help: "holder proofs remembered; beyond, proofs are denied rather than forgotten",
    group: PROOFS,
  },
  revocationPoll: {
    type: "duration",
    default: "5s",
    help: "time between looks at the revocation log when nothing wakes",
    group: REVOCATIONS,
  },
  revocationMaxStaleness: {
    type: "duration",
    default: "150s",
    help: "age of the last look at the revocation log beyond which every token is denied",
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
    help: "blocks that one principal may revoke within a day; the platform's root may any number",
    group: REVOCATIONS,
  },
  revocationPeers: {
    type: "list",
    default: [],
    help: "addresses of delegateos/revoke endpoints that are told of every revocation",
    group: REVOCATIONS,
  },
  revocationSources: {
    type: "list",
    default: [],
    help: "addresses of other platforms' revocation endpoints that are read",
    group: REVOCATIONS,
  },
  revocationSourcePoll: {
    type: "duration",
    default: "60s",
    help: "time between two reads of a source",
    group: REVOCATIONS,
  },
  auditRetention: {
    type: "duration",
    default: "2160h",
    help: "how long decisions are kept; 0s: for ever",
    group: RECORDS,
  },
  delegationRetention: {
    type: "duration",
    default: "720h",
    help: "how long delegations and blocks are kept after they ended; 0s: for ever",
    group: RECORDS,
  },
  spenders: {
    type: "list",
    default: [],
    help: "principals besides a token's holder that may reserve spend under it, as one who serves its calls does",
    group: SPEND,
  },
});

export type TokensSettings = Settings<typeof tokensSettings>;

/**
 * Refuses settings that contradict each other.
 *
 * @throws SettingsError
 */
export function assertSettings(settings: TokensSettings): void {
  const { revocationPoll, revocationMaxStaleness, revocationSourcePoll } = settings;
  for (const address of [...settings.revocationPeers, ...settings.revocationSources]) {
    if (/^https?:\/\//.test(address) && URL.canParse(address)) continue;
    throw new SettingsError(
      `DEPUTE_REVOCATION_PEERS and _SOURCES are http addresses, which ${address} is not`,
    );
  }
  const { tokenMinLifetime, tokenMaxLifetime } = settings;
  if (tokenMinLifetime > tokenMaxLifetime || tokenMaxLifetime === 0) {
    throw new SettingsError("DEPUTE_TOKEN_MIN_LIFETIME is at most DEPUTE_TOKEN_MAX_LIFETIME, which is not 0");
  }
  if (revocationSourcePoll < 1000) throw new SettingsError("DEPUTE_REVOCATION_SOURCE_POLL is at least 1s");
  if (revocationPoll > 0 && revocationMaxStaleness >= 2 * revocationPoll) return;
  throw new SettingsError(
    "DEPUTE_REVOCATION_MAX_STALENESS must be at least twice DEPUTE_REVOCATION_POLL, which must not be 0: " +
      "one late look would deny every token",
  );
}
