import { defineSettings } from "@depute/service";
import { ORCHESTRATORS } from "../core/index.ts";

export const REVIEW_SETTINGS = defineSettings({
  tasksReviewTimeout: {
    type: "duration",
    default: "24h",
    help: "how long an overseer has for a result; then the task fails",
    group: "Tasks",
  },
  tasksReviewEscalation: {
    type: "list",
    default: [],
    help: "principals that may decide on held results, too, when half of that time is over; CAP's orchestrator may",
    group: "Tasks",
  },
  ...ORCHESTRATORS,
});
