import type { DescService } from "@bufbuild/protobuf";
import { servicesOf } from "@depute/core/services";
import type { ServiceName } from "@depute/service";

/** For each service of the platform, the RPC services that it implements and that the gateway forwards to it. */
export const FORWARDED: Readonly<Record<ServiceName, readonly DescService[]>> = {
  registry: servicesOf("registry"),
  tasks: servicesOf("tasks"),
  tokens: servicesOf("tokens"),
  verifier: servicesOf("verifier"),
};
