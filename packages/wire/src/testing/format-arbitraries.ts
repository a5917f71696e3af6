import fc from "fast-check";

/**
 * Generates RFC 3339 date-times: any offset, any fraction, lower-case letters, and the leap second where it may occur.
 */
export function dateTime(): fc.Arbitrary<string> {
  return fc
    .tuple(day(), fc.constantFrom("T", "t"), fc.oneof({ weight: 20, arbitrary: time() }, leapSecond()))
    .map((parts) => parts.join(""));
}

/** Generates an existing day, from year 0 to 9999. */
function day(): fc.Arbitrary<string> {
  return fc
    .record({ year: number(0, 9999), month: number(1, 12), day: number(1, 31) })
    .filter(({ year, month, day }) => day <= daysOf(year, month))
    .map(({ year, month, day }) => `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}`);
}

function daysOf(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

function time(): fc.Arbitrary<string> {
  return fc
    .tuple(hourAndMinute(), number(0, 59), fraction(), fc.oneof(fc.constantFrom("Z", "z"), offset()))
    .map(([at, second, fraction, offset]) => `${at}:${digits(second, 2)}${fraction}${offset}`);
}

function leapSecond(): fc.Arbitrary<string> {
  return fraction().map((fraction) => `23:59:60${fraction}Z`);
}

function offset(): fc.Arbitrary<string> {
  return fc.tuple(fc.constantFrom("+", "-"), hourAndMinute()).map((parts) => parts.join(""));
}

function hourAndMinute(): fc.Arbitrary<string> {
  return fc
    .tuple(number(0, 23), number(0, 59))
    .map(([hour, minute]) => `${digits(hour, 2)}:${digits(minute, 2)}`);
}

function fraction(): fc.Arbitrary<string> {
  return fc.oneof(fc.constant(""), fc.stringMatching(/^\.[0-9]{1,12}$/));
}

/**
 * Generates RFC 3986 URIs with a scheme: web URIs with all parts, numeric hosts, and schemes without a host. Two kinds
 * of host are left out because protovalidate's `uri` refuses them: an IPv6 address that ends in dotted decimals, and
 * percent-encoded bytes that are not UTF-8.
 */
export function uri(): fc.Arbitrary<string> {
  const path = fc.webPath();
  return fc.oneof(
    fc.webUrl({
      withQueryParameters: true,
      withFragments: true,
      validSchemes: ["http", "https", "ftp", "wss"],
    }),
    fc.tuple(fc.ipV4(), number(0, 65535), path).map(([host, port, path]) => `http://${host}:${port}${path}`),
    fc
      .tuple(
        fc.ipV6().filter((host) => !host.includes(".")),
        path,
      )
      .map(([host, path]) => `https://[${host}]${path}`),
    fc.uuid().map((id) => `urn:uuid:${id}`),
    fc.stringMatching(/^[a-z0-9.]{1,20}@[a-z]{1,10}\.example$/).map((address) => `mailto:${address}`),
    fc.base64String().map((bytes) => `data:application/octet-stream;base64,${bytes}`),
    fc.stringMatching(
      /^[a-z][a-z0-9+.-]{0,8}:\/\/[a-z0-9.-]{1,12}(\/[a-z0-9._~!$&'()*+,;=:@-]{0,6}(%[0-9A-F]{2})?){0,4}$/,
    ),
  );
}

function number(min: number, max: number): fc.Arbitrary<number> {
  return fc.integer({ min, max });
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, "0");
}
