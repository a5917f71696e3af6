import type { SuiteRevision } from "./suite.ts";

/** The number of the suite's server scenarios in each revision. */
export const SCENARIOS: Readonly<Record<SuiteRevision, number>> = {
  "2025-06-18": 27,
  "2025-11-25": 33,
  "2026-07-28": 40,
};

/** Scenarios that a server of 2025-11-25 behind Depute fails for a client of each revision, with the reasons. */
export const EARLIER_SERVER_DIFFERENCES: Readonly<
  Record<Exclude<SuiteRevision, "2025-06-18">, Readonly<Record<string, string>>>
> = {
  "2025-11-25": {},
  "2026-07-28": {
    "input-required-result-basic-elicitation":
      "an earlier server names no keys for its requests, and the scenario expects the fixture's own",
    "input-required-result-capability-check":
      "an earlier server learns the capabilities at its start, and the fixture has no request left",
    "server-stateless": "an earlier server has no error for a capability that the client did not declare",
  },
};

/** Scenarios that a server behind Depute fails, with the reasons. The test fails if one of them passes. */
export const DIFFERENCES: Readonly<Record<SuiteRevision, Readonly<Record<string, string>>>> = {
  "2025-06-18": {},
  "2025-11-25": {},
  "2026-07-28": {},
};
