import { defineSettings } from "@depute/service";

const GROUP = "Verifier";

export const settings = defineSettings({
  verifierKeyFile: {
    type: "string",
    default: "",
    help: "file with the verifier's Ed25519 seed in base64url; empty: verifier.key in the data folder, created if missing",
    group: GROUP,
  },
  verifierWorkers: {
    type: "int",
    default: 2,
    min: 1,
    max: 64,
    help: "threads that run users' schemas, patterns and checks",
    group: GROUP,
  },
  verifierCheckTimeout: {
    type: "duration",
    default: "1s",
    help: "timeout of one check; a stopped check has not passed",
    group: GROUP,
  },
  verifierCheckMemoryMb: {
    type: "int",
    default: 128,
    min: 32,
    max: 4096,
    help: "heap limit of one of these threads in megabytes",
    group: GROUP,
  },
  verifierMaxWaitingChecks: {
    type: "int",
    default: 256,
    min: 1,
    max: 100_000,
    help: "checks that may wait for a thread",
    group: GROUP,
  },
  verifierChecks: {
    type: "string",
    default: "",
    help: "JavaScript or TypeScript module that registers additional checks; empty: none",
    group: GROUP,
  },
  verifierJudges: {
    type: "string",
    default: "",
    help: "JSON file with the endpoints of models for llm_judge; empty: none",
    group: GROUP,
  },
  verifierOutboundHosts: {
    type: "list",
    default: [],
    help: "hosts (name or name:port) that the verifier may send requests to",
    group: GROUP,
  },
  verifierEvidenceHosts: {
    type: "list",
    default: [],
    help:
      "hosts from which artifacts are fetched and compared with their digests, as host or host:port, with private: before " +
      "hosts with private addresses; empty: nothing is fetched",
    group: GROUP,
  },
  verifierJudgeTimeout: {
    type: "duration",
    default: "60s",
    help: "timeout of one answer of a model",
    group: GROUP,
  },
  verifierJudgesAtOnce: {
    type: "int",
    default: 8,
    min: 1,
    max: 1000,
    help: "concurrent questions to models",
    group: GROUP,
  },
  verifierReviewers: {
    type: "list",
    default: [],
    help: "principals that may decide every human_review, in addition to the contract's issuer",
    group: GROUP,
  },
  verifierReviewTimeout: {
    type: "duration",
    default: "24h",
    help: "default timeout of a human_review; then llm_judge decides",
    group: GROUP,
  },
  verifierMaxWitnessedPlatforms: {
    type: "int",
    default: 100,
    min: 0,
    max: 10_000,
    help: "platforms whose logs' heads this platform keeps, as their witness",
    group: GROUP,
  },
});
