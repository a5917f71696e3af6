import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Address blocks that lead to no public host: the special-purpose registries of RFC 6890 and its successors. */
const PRIVATE_IPV4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const;

/** Global unicast is 2000::/3 alone; these are the parts of it that are not, or that carry an IPv4 address inside. */
const PRIVATE_IPV6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

const privateBlocks = new BlockList();
for (const [network, prefix] of PRIVATE_IPV4) privateBlocks.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of PRIVATE_IPV6) privateBlocks.addSubnet(network, prefix, "ipv6");

const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

/** Whether an IP address in its text form is one that the public Internet routes. Anything else is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !privateBlocks.check(address, "ipv4");
  if (!isIPv6(address)) return false;
  return globalUnicast.check(address, "ipv6") && !privateBlocks.check(address, "ipv6");
}
