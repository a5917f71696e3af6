/**
 * The setting of the services that call webhooks, or that report to clients whether the platform calls
 * webhooks.
 */
export const WEBHOOK_HOSTS = {
  type: "list",
  default: [],
  help:
    "hosts to which the platform may post events of A2A tasks, if the client names an address for them; as host or host:port, with " +
    "private: before names of private addresses; empty: the cards declare no push notifications",
  group: "A2A",
} as const;
