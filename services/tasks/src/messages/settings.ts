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
    help: "whether to refuse a plain message that contains a held result; if not, the lineage marks the message",
    group: CAP,
  },
  capErrorActions: {
    type: "list",
    default: [],
    help: "actions for codes of CAP's error_response that differ from CAP's table: 502=reassign",
    group: CAP,
  },
  capTaskTimeout: {
    type: "duration",
    default: "24h",
    help: "maximum duration of a task that a message delegated",
    group: CAP,
  },
});
