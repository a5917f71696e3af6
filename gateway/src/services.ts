import type { DescService } from "@bufbuild/protobuf";
import { servicesOf } from "@depute/core/services";
import type { ServiceName } from "@depute/service";

/** The RPC services that the gateway serves by forwarding, and whose they are. */
export const FORWARDED: Readonly<Record<ServiceName, readonly DescService[]>> = {
  registry: servicesOf("registry"),
  tasks: servicesOf("tasks"),
  tokens: servicesOf("tokens"),
  verifier: servicesOf("verifier"),
};
