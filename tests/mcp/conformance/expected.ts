import type { SuiteRevision } from "./suite.ts";

/** The number of the suite's server scenarios in each revision. */
export const SCENARIOS: Readonly<Record<SuiteRevision, number>> = {
  "2025-06-18": 27,
  "2025-11-25": 33,
  "2026-07-28": 40,
};

const NO_LOGS = "the proxy drops log messages and log levels";
const NO_SUBSCRIPTIONS = "the proxy offers no subscriptions to resources";
const NO_REQUESTS = "the proxy does not send a modern server's requests to a client of an earlier revision";
const ANY_HOST = "the gateway does not compare the headers host and origin with its own address";

const LEGACY = {
  "logging-set-level": NO_LOGS,
  "resources-subscribe": NO_SUBSCRIPTIONS,
  "resources-unsubscribe": NO_SUBSCRIPTIONS,
  "tools-call-elicitation": NO_REQUESTS,
  "tools-call-sampling": NO_REQUESTS,
  "tools-call-with-logging": NO_LOGS,
};

/** Scenarios that a server behind Depute fails, with the reasons. The test fails if one of them passes. */
export const DIFFERENCES: Readonly<Record<SuiteRevision, Readonly<Record<string, string>>>> = {
  "2025-06-18": LEGACY,
  "2025-11-25": {
    ...LEGACY,
    "dns-rebinding-protection": ANY_HOST,
    "elicitation-sep1034-defaults": NO_REQUESTS,
    "elicitation-sep1330-enums": NO_REQUESTS,
  },
  "2026-07-28": {
    "dns-rebinding-protection": ANY_HOST,
    "http-custom-header-server-validation": "the proxy does not validate Mcp-Param headers",
    "input-required-result-capability-check":
      "the server sees the proxy's capabilities instead of the client's",
    "server-stateless": "the proxy answers an unknown method and a missing capability with status 200",
  },
};
