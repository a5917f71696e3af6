import { defineSettings } from "@depute/service";
import { POLL_INTERVAL } from "../core/index.ts";

export const EXECUTION_SETTINGS = defineSettings({
  ...POLL_INTERVAL,
  executionsCallbackHosts: {
    type: "list",
    default: [],
    help:
      "hosts to which the platform may send receipts, if a request names an address, as host or host:port, with private: before " +
      "names of private addresses; empty: the platform sends none",
    group: "Executions",
  },
  executionsRetention: {
    type: "duration",
    default: "2160h",
    help: "how long the store keeps an execution and its receipts after its end; at least a day",
    group: "Executions",
  },
  executionsRejectedRetention: {
    type: "duration",
    default: "72h",
    help: "how long the store keeps a rejected request and its receipt; at least a day",
    group: "Executions",
  },
  executionsVerificationTimeout: {
    type: "duration",
    default: "168h",
    help: "how long a completed execution waits for its verification; then the money goes back to the buyer",
    group: "Executions",
  },
});
