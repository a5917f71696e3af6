import { defineSettings } from "@depute/service";
import { ORCHESTRATORS } from "../core/index.ts";

export const REVIEW_SETTINGS = defineSettings({
  tasksReviewTimeout: {
    type: "duration",
    default: "24h",
    help: "how long a held result waits for its overseer; then the task fails",
    group: "Tasks",
  },
  tasksReviewEscalation: {
    type: "list",
    default: [],
    help: "principals that, like CAP's orchestrator, may also decide on held results after half of that time",
    group: "Tasks",
  },
  ...ORCHESTRATORS,
});
