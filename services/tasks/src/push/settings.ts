import { defineSettings } from "@depute/service";

export const PUSH_SETTINGS = defineSettings({
  tasksOutboundHosts: {
    type: "list",
    default: [],
    help:
      "hosts of agents to which the platform sends tasks by NEKTE or A2A, as host or host:port, with private: " +
      "before names of private addresses; empty: none",
    group: "Tasks",
  },
  tasksOutboundCredentials: {
    type: "string",
    default: "",
    help: 'JSON file of {"bearer": secret} or {"apikey": secret} for these endpoints, by their origins; empty: none',
    group: "Tasks",
  },
  tasksPushCapacity: {
    type: "int",
    default: 64,
    min: 1,
    max: 10_000,
    help: "maximum number of concurrent tasks at agents' own endpoints",
    group: "Tasks",
  },
  tasksPushPerAgent: {
    type: "int",
    default: 16,
    min: 1,
    max: 1000,
    help: "maximum number of these tasks for one agent",
    group: "Tasks",
  },
});
