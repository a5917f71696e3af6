import { execFileSync, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";

/** Milliseconds in which an engine must answer after its start. */
const START_MS = 30_000;

/** A Docker engine, by its command line. */
export class Engine {
  readonly #env: NodeJS.ProcessEnv;
  readonly #stop: () => void;

  private constructor(host: string | undefined, stop: () => void) {
    this.#env = {
      ...process.env,
      ...(host && { DOCKER_HOST: host }),
      DOCKER_BUILDKIT: "0",
      COMPOSE_DOCKER_CLI_BUILD: "0",
    };
    this.#stop = stop;
  }

  /**
   * Connects to the engine of the machine. If none answers, starts an engine of this process, which only root may.
   *
   * @param folder the folder for the data, the socket and the log of an engine that this process starts
   */
  static async open(folder: string): Promise<Engine> {
    if (answers(process.env)) return new Engine(undefined, () => {});
    const lack =
      "no Docker engine answers; start one, or run as root with `apt-get install docker.io docker-compose`";
    if (process.getuid?.() !== 0 || spawnSync("dockerd", ["--version"]).status !== 0) throw new Error(lack);
    mkdirSync(folder, { recursive: true });
    const host = `unix://${join(folder, "docker.sock")}`;
    const log = openSync(join(folder, "dockerd.log"), "w");
    const places = ["--data-root", join(folder, "data"), "--exec-root", join(folder, "exec")];
    const daemon = spawn(
      "dockerd",
      [...places, "--host", host, "--pidfile", join(folder, "pid"), "--iptables=false", "--bridge=none"],
      { stdio: ["ignore", log, log] },
    );
    for (let waitedMs = 0; !answers({ ...process.env, DOCKER_HOST: host }); waitedMs += 200) {
      if (daemon.exitCode !== null || waitedMs > START_MS)
        throw new Error(`dockerd did not start; see ${folder}/dockerd.log`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return new Engine(host, () => daemon.kill());
  }

  /** Runs `docker` and shows its output. @throws Error if it fails */
  run(args: readonly string[], options: SpawnOptions = {}): void {
    this.#command("docker", args, options);
  }

  /** Runs `docker-compose`, or `docker compose` where only that is installed. @throws Error if it fails */
  compose(args: readonly string[], options: SpawnOptions = {}): void {
    const isPlugin = spawnSync("docker-compose", ["version"]).status !== 0;
    if (isPlugin) this.#command("docker", ["compose", ...args], options);
    else this.#command("docker-compose", args, options);
  }

  /** Runs `docker`, and returns its output without the last line break. @throws Error if it fails */
  read(args: readonly string[]): string {
    return execFileSync("docker", [...args], { env: this.#env, encoding: "utf8" }).trimEnd();
  }

  /** Whether an image exists. */
  hasImage(name: string): boolean {
    return spawnSync("docker", ["image", "inspect", name], { env: this.#env }).status === 0;
  }

  /** Stops the engine that this process started. */
  close(): void {
    this.#stop();
  }

  #command(command: string, args: readonly string[], { env, ...options }: SpawnOptions): void {
    const { status } = spawnSync(command, [...args], {
      stdio: "inherit",
      env: { ...this.#env, ...env },
      ...options,
    });
    if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`);
  }
}

function answers(env: NodeJS.ProcessEnv): boolean {
  return spawnSync("docker", ["info"], { env, timeout: 5_000 }).status === 0;
}
