import { defineService, SERVICES } from "@depute/service";
import { forwardService } from "./forward.ts";
import { FORWARDED } from "./services.ts";

/** Every service on one port, and the JSON wires. */
export const gateway = defineService({
  name: "gateway",
  settings: {},
  descriptors: SERVICES.flatMap((name) => FORWARDED[name]),
  async start(deps) {
    return {
      routes: (router) => {
        for (const name of SERVICES) {
          const transport = deps.connect(name);
          for (const service of FORWARDED[name]) {
            router.service(service, forwardService(service, transport, deps.clock));
          }
        }
      },
      close: async () => {},
    };
  },
});
