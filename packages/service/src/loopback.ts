import { BlockList, isIP } from "node:net";
import { SettingsError } from "./settings.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether nobody outside of this machine reaches an address. Names other than `localhost` are taken to be reachable. */
export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const family = isIP(host);
  return family !== 0 && loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}

/**
 * Refuses to serve whoever comes along to a network.
 *
 * @throws SettingsError when calls without credentials would be served at an address that others reach
 */
export function assertBindable(host: string, auth: "open" | "required"): void {
  if (auth === "required" || isLoopback(host)) return;
  throw new SettingsError(
    `DEPUTE_HOST is ${host}, which is not a loopback address, while DEPUTE_AUTH is open: ` +
      "set DEPUTE_AUTH=required and DEPUTE_CREDENTIALS_FILE, or listen on 127.0.0.1",
  );
}
