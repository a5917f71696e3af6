import { defineSettings } from "@depute/service";
import { POLL_INTERVAL } from "../core/index.ts";

export const SESSION_SETTINGS = defineSettings({
  ...POLL_INTERVAL,
  aspStrictIds: {
    type: "bool",
    default: true,
    help: "whether ids of ASP sessions and messages have to be UUIDv7; false takes any of that shape",
    group: "ASP sessions",
  },
  aspMessageRates: {
    type: "list",
    default: ["60", "120", "300", "600", "1200"],
    help: "messages a minute that an agent may send, for the levels of trust 0 to 4; a minute's may come at once",
    group: "ASP sessions",
  },
});
