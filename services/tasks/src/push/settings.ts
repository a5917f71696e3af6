import { defineSettings } from "@depute/service";

export const PUSH_SETTINGS = defineSettings({
  tasksOutboundHosts: {
    type: "list",
    default: [],
    help:
      "hosts of agents that answer NEKTE or A2A themselves and are sent their work, as host or host:port, with private: " +
      "before names of private addresses; empty: none is",
    group: "Tasks",
  },
  tasksOutboundCredentials: {
    type: "string",
    default: "",
    help: 'JSON file of {"bearer": secret} or {"apikey": secret} for such endpoints, by their origins; empty: none',
    group: "Tasks",
  },
  tasksPushCapacity: {
    type: "int",
    default: 64,
    min: 1,
    max: 10_000,
    help: "tasks at agents' own endpoints at once",
    group: "Tasks",
  },
  tasksPushPerAgent: {
    type: "int",
    default: 16,
    min: 1,
    max: 1000,
    help: "of these, for one agent",
    group: "Tasks",
  },
});
