import { defineSettings } from "@depute/service";
import { ORCHESTRATORS, POLL_INTERVAL, RETENTION } from "../core/index.ts";

const CAP = "Tasks: CAP";

export const MESSAGE_SETTINGS = defineSettings({
  ...POLL_INTERVAL,
  ...RETENTION,
  ...ORCHESTRATORS,
  userPrincipals: {
    type: "list",
    default: [],
    help: "principals that act as CAP's `user`",
    group: CAP,
  },
  capPlainApproval: {
    type: "bool",
    default: false,
    help: "whether an overseer's plain message to the delegator approves a result, as in CAP's example",
    group: CAP,
  },
  capRefuseHeldResults: {
    type: "bool",
    default: false,
    help: "whether a plain message that carries a result which waits for its overseer is refused; it is marked otherwise",
    group: CAP,
  },
  capErrorActions: {
    type: "list",
    default: [],
    help: "what becomes of a task by a code of CAP's error_response, other than its table says: 502=reassign",
    group: CAP,
  },
  capTaskTimeout: {
    type: "duration",
    default: "24h",
    help: "how long a task that was delegated by a message may take",
    group: CAP,
  },
});
