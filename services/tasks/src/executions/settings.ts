import { defineSettings } from "@depute/service";
import { POLL_INTERVAL } from "../core/index.ts";

export const EXECUTION_SETTINGS = defineSettings({
  ...POLL_INTERVAL,
  executionsCallbackHosts: {
    type: "list",
    default: [],
    help:
      "hosts that receipts are sent to where a request names an address for them, as host or host:port, with private: before " +
      "names of private addresses; empty: none are sent",
    group: "Executions",
  },
  executionsRetention: {
    type: "duration",
    default: "2160h",
    help: "how long an execution and its receipts are kept after its end; a day at least",
    group: "Executions",
  },
  executionsRejectedRetention: {
    type: "duration",
    default: "72h",
    help: "how long a rejected request and its receipt are kept; a day at least",
    group: "Executions",
  },
  executionsVerificationTimeout: {
    type: "duration",
    default: "168h",
    help: "how long the verification of a completed execution is waited for; then the money goes back to the buyer",
    group: "Executions",
  },
});
