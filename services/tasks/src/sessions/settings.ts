import { defineSettings } from "@depute/service";
import { POLL_INTERVAL } from "../core/index.ts";

export const SESSION_SETTINGS = defineSettings({
  ...POLL_INTERVAL,
  aspStrictIds: {
    type: "bool",
    default: true,
    help: "whether ids of ASP sessions and messages must be UUIDv7; false accepts any text of the same shape",
    group: "ASP sessions",
  },
  aspMessageRates: {
    type: "list",
    default: ["60", "120", "300", "600", "1200"],
    help: "maximum messages a minute of an agent, for the levels of trust 0 to 4; an agent may send a minute's messages at once",
    group: "ASP sessions",
  },
});
