import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** How the client of a language is generated from the contracts. */
export interface ClientLanguage {
  /** The template of `buf generate`. */
  readonly template: string;
  /** The plugins, and the command that installs each. */
  readonly plugins: Readonly<Record<string, readonly string[]>>;
  /** Additional folders that contain plugins, besides those of the PATH. */
  readonly folders?: () => string[];
  /** Folders of contracts whose generated code the language's libraries already contain. */
  readonly fromLibraries: readonly string[];
  /** Further files, by their path below the output folder. */
  readonly files?: Readonly<Record<string, string>>;
}

export const CLIENT_LANGUAGES: Readonly<Record<string, ClientLanguage>> = {
  go: {
    template: "buf.gen.clients.yaml",
    plugins: {
      "protoc-gen-go": ["go", "install", "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11"],
      "protoc-gen-go-grpc": ["go", "install", "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2"],
    },
    folders: goInstalls,
    fromLibraries: ["google", "buf"],
    // The code is a Go module, so that a client's go.mod can replace the module by the output folder.
    files: { "go/go.mod": "module github.com/depute/depute/gen/go\n\ngo 1.25.0\n" },
  },
  java: {
    template: "buf.gen.clients.java.yaml",
    plugins: {
      protoc: fromMaven("com.google.protobuf:protoc:3.25.9"),
      "protoc-gen-grpc-java": fromMaven("io.grpc:protoc-gen-grpc-java:1.83.1"),
    },
    fromLibraries: ["google"],
  },
  csharp: {
    template: "buf.gen.clients.csharp.yaml",
    plugins: { protoc: ["apt-get", "install", "protobuf-compiler"] },
    fromLibraries: ["google"],
  },
  python: {
    template: "buf.gen.clients.python.yaml",
    plugins: {
      protoc: ["apt-get", "install", "protobuf-compiler"],
      grpc_python_plugin: ["apt-get", "install", "protobuf-compiler-grpc"],
    },
    fromLibraries: ["google"],
  },
};

/** The command that fetches a program of Maven Central for this machine. Rename the file to the plugin's name. */
function fromMaven(artifact: string): string[] {
  const machine = process.arch === "arm64" ? "aarch_64" : "x86_64";
  return ["mvn", "dependency:copy", `-Dartifact=${artifact}:exe:linux-${machine}`, "-DoutputDirectory=."];
}

/** The folder of `go install`, which few shells have on the PATH. */
function goInstalls(): string[] {
  const { status, stdout } = spawnSync("go", ["env", "GOBIN", "GOPATH"], { encoding: "utf8" });
  if (status !== 0) return [];
  const [bin = "", path = ""] = stdout.split("\n");
  return [bin === "" ? join(path, "bin") : bin];
}
