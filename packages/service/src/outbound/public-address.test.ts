import { expect, test } from "vitest";
import { isPublicAddress } from "./public-address.ts";

/** The first and the last address of each block that contains no public hosts. */
test.each([
  ["this network", "0.0.0.0", "0.255.255.255"],
  ["private, 10/8", "10.0.0.0", "10.255.255.255"],
  ["shared by carriers", "100.64.0.0", "100.127.255.255"],
  ["loopback", "127.0.0.0", "127.255.255.255"],
  ["link-local", "169.254.0.0", "169.254.255.255"],
  ["private, 172.16/12", "172.16.0.0", "172.31.255.255"],
  ["protocol assignments", "192.0.0.0", "192.0.0.255"],
  ["documentation 1", "192.0.2.0", "192.0.2.255"],
  ["6to4 relays", "192.88.99.0", "192.88.99.255"],
  ["private, 192.168/16", "192.168.0.0", "192.168.255.255"],
  ["benchmarks", "198.18.0.0", "198.19.255.255"],
  ["documentation 2", "198.51.100.0", "198.51.100.255"],
  ["documentation 3", "203.0.113.0", "203.0.113.255"],
  ["multicast, reserved, broadcast", "224.0.0.0", "255.255.255.255"],
  ["reserved", "240.0.0.0", "255.255.255.254"],
  ["below global unicast", "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["IPv4 within IPv6", "::ffff:8.8.8.8", "64:ff9b::808:808"],
  ["IPv6 protocol assignments", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["within those", "2001:2::1", "2001:20::1"],
  ["within those, not assigned", "2001:1::1", "2001:100::1"],
  ["IPv6 documentation", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["6to4", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["IPv6 documentation 2", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["above global unicast", "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["unique local", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["IPv6 link-local, with and without a zone", "fe80::1%eth0", "febf::1"],
  ["IPv6 multicast", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["other spellings", "010.8.8.8", "134744072"],
  ["no address", "example.com", ""],
])("%s: %s and %s are not public", (_, first, last) => {
  expect([isPublicAddress(first), isPublicAddress(last)]).toEqual([false, false]);
});

test.each(["8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.0", "100.128.0.0", "223.255.255.255"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

test.each(["2606:4700::1111", "2001:200::1", "2a00:1450:4001:80b::200e", "2600::"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);
