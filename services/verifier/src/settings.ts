import { defineSettings } from "@depute/service";

const GROUP = "Verifier";

export const settings = defineSettings({
  verifierKeyFile: {
    type: "string",
    default: "",
    help: "file with the verifier's Ed25519 seed in base64url; empty: verifier.key in the data folder, made when missing",
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
    help: "time for one check, then it is stopped and has not passed",
    group: GROUP,
  },
  verifierCheckMemoryMb: {
    type: "int",
    default: 128,
    min: 32,
    max: 4096,
    help: "megabytes of one such thread",
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
});
