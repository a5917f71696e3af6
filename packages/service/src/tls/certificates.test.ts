import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "../log.ts";
import { Certificates, type TlsSettings } from "./certificates.ts";
import { DevelopmentAuthority, type Identity } from "./development-certificates.ts";

const NONE: TlsSettings = {
  tlsCertFile: "",
  tlsKeyFile: "",
  tlsClientCaFile: "",
  tlsClientAuth: "required",
  tlsCaFile: "",
  tlsMinVersion: "1.2",
};
const authority = await DevelopmentAuthority.create(new Date("2026-01-01"), new Date("2126-01-01"));
const [first, second] = [
  await authority.issue({ hosts: ["localhost"] }),
  await authority.issue({ hosts: ["localhost"] }),
];

let folder: string;
let clock: ManualClock;
let lines: { level: number; msg: string }[];
let opened: Certificates | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-certificates-"));
  clock = new ManualClock();
  lines = [];
});
afterEach(() => {
  opened?.close();
  rmSync(folder, { recursive: true, force: true });
});

const pathTo = (name: string): string => join(folder, name);

/** Writes a certificate and its key to the folder, and returns the settings that name these files. */
function save({ certificate, key }: Identity): TlsSettings {
  writeFileSync(pathTo("server.pem"), certificate);
  writeFileSync(pathTo("server.key"), key);
  return { ...NONE, tlsCertFile: pathTo("server.pem"), tlsKeyFile: pathTo("server.key") };
}

function saveText(name: string, text: string): string {
  writeFileSync(pathTo(name), text);
  return pathTo(name);
}

function open(settings: TlsSettings): Certificates {
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: "info", name: "test", destination });
  opened = Certificates.open({ settings, timers: clock, log });
  return opened;
}

describe("settings of TLS", () => {
  it("without files leave listeners in clear text, and set no timer", () => {
    expect(open(NONE).listener).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  it.each<[string, () => Partial<TlsSettings>, RegExp]>([
    ["a certificate without a key", () => ({ tlsKeyFile: "" }), /belong together/],
    ["a key without a certificate", () => ({ tlsCertFile: "" }), /belong together/],
    ["an absent file", () => ({ tlsKeyFile: pathTo("absent") }), /DEPUTE_TLS_\*.*ENOENT.*absent/],
    [
      "the key of another certificate",
      () => ({ tlsKeyFile: saveText("other", second.key) }),
      /key values mismatch/,
    ],
    ["a file that is not PEM", () => ({ tlsCertFile: saveText("other", "hello") }), /cannot be used/],
    [
      "authorities that are not PEM",
      () => ({ tlsCaFile: saveText("other", "hello") }),
      /file of DEPUTE_TLS_CA_FILE contains no certificate/,
    ],
  ])("refuse %s", (_, change, message) => {
    const settings = save(first);
    expect(() => open({ ...settings, ...change() })).toThrow(message);
  });

  it("refuse client authorities for listeners without TLS", () => {
    const tlsClientCaFile = saveText("ca.pem", authority.certificate);
    expect(() => open({ ...NONE, tlsClientCaFile })).toThrow(/needs DEPUTE_TLS_CERT_FILE/);
  });

  it.each([
    ["required", true],
    ["optional", false],
  ])("with %s client certificates", (tlsClientAuth, rejectUnauthorized) => {
    const settings = save(first);
    const tlsClientCaFile = saveText("ca.pem", authority.certificate);
    const { listener } = open({ ...settings, tlsClientCaFile, tlsClientAuth });
    expect(listener).toMatchObject({ requestCert: true, rejectUnauthorized });
  });
});

describe("changed files", () => {
  it("are used within 5 seconds", () => {
    const certificates = open(save(first));
    const received: unknown[] = [];
    certificates.onChange(({ cert }) => received.push(cert));
    const { caller } = certificates;
    save(second);
    clock.advance(5000);
    expect(received).toEqual([second.certificate]);
    expect(certificates.listener?.secureContext.cert).toBe(second.certificate);
    expect(certificates.caller).not.toBe(caller);
    expect(lines.map(({ msg }) => msg)).toEqual(["certificates read again"]);
  });

  it("are refused completely while they are malformed: the old ones stay, and one log line states it", () => {
    const certificates = open(save(first));
    saveText("server.pem", second.certificate);
    clock.advance(20_000);
    expect(certificates.listener?.secureContext.cert).toBe(first.certificate);
    expect(lines.map(({ msg }) => msg)).toEqual([
      "the changed certificates cannot be used; the old certificates stay in use",
    ]);
    save(second);
    clock.advance(5000);
    expect(certificates.listener?.secureContext.cert).toBe(second.certificate);
  });

  it("are not read again after the close", () => {
    open(save(first)).close();
    expect(clock.pending).toBe(0);
  });
});
