import type { SuiteRevision } from "./suite.ts";

/** The number of the suite's server scenarios in each revision. */
export const SCENARIOS: Readonly<Record<SuiteRevision, number>> = {
  "2025-06-18": 27,
  "2025-11-25": 33,
  "2026-07-28": 40,
};

/** Scenarios that a server behind Depute fails, with the reasons. The test fails if one of them passes. */
export const DIFFERENCES: Readonly<Record<SuiteRevision, Readonly<Record<string, string>>>> = {
  "2025-06-18": {},
  "2025-11-25": {},
  "2026-07-28": {},
};
