/**
 * `npm run test:clients`: tests the workers and delegators of all languages with each other. Arguments select
 * some of the languages. The programs are those of examples/README.md.
 */
import { execFileSync } from "node:child_process";
import { runDocumented } from "./documented.ts";
import { type Command, LANGUAGES, type Language } from "./languages.ts";
import { Program } from "./program.ts";
import { Results, say } from "./results.ts";
import { Scene } from "./scene.ts";
import { cancellation, drops, revocation, STORY_MS, takeover } from "./stories.ts";

/**
 * Maximum number of concurrent stories (test scenarios). Stories can run concurrently, because a story mostly
 * waits.
 */
const AT_ONCE = 4;

/** Timeout of one command of a build, in milliseconds. */
const BUILD_MS = 600_000;

const PAIR_STORIES = { drops, cancellation, revocation };

/** The built programs of a language. */
interface Programs {
  readonly name: string;
  readonly worker: Command;
  readonly delegator: Command;
}

type Job = () => Promise<unknown>;

/**
 * Prints the missing toolchains. @returns the languages with a toolchain. @throws Error with CI=true, for a missing one
 */
function withToolchain(languages: readonly Language[]): Language[] {
  return languages.filter((language) => {
    const missingTools = language.missingTools().join("; ");
    if (missingTools === "") return true;
    if (process.env.CI === "true")
      throw new Error(`${missingTools}: with CI=true its tests may not be skipped.`);
    say(`\n*** ${missingTools}: THE ${language.name.toUpperCase()} PROGRAMS ARE NOT TESTED. ***\n`);
    return false;
  });
}

/** Builds the programs of a language, and runs its tests of the vectors and its documented program. @returns undefined after a failure */
async function build(language: Language, scene: Scene, results: Results): Promise<Programs | undefined> {
  const scratch = scene.scratch(language);
  const { name, vectors } = language;
  const run = (command: Command) => new Program(command).end(AbortSignal.timeout(BUILD_MS));
  const isBuilt = await results.record(name, "", "build", async () => {
    for (const command of language.build(scratch)) await run(command);
  });
  if (!isBuilt) return undefined;
  if (vectors !== undefined) await results.record(name, "", "vectors", () => run(vectors(scratch)));
  if (language.documented !== undefined) {
    await results.record(name, "", "docs/clients.md", () => runDocumented(language, scene, scratch));
  }
  return { name, worker: language.worker(scratch), delegator: language.delegator(scratch) };
}

/** Starts a worker in each language. Returns the test scenarios for every pair of worker and delegator. */
async function pairs(scene: Scene, languages: readonly Programs[], results: Results): Promise<Job[]> {
  const jobs: Job[] = [];
  for (const { name, worker: command } of languages) {
    const agent = `sentiment-${name}`;
    let worker: Program | undefined;
    await results.record(name, "", "start", async () => {
      worker = await scene.worker(command, agent, AbortSignal.timeout(STORY_MS));
    });
    for (const { name: other, delegator } of languages) {
      for (const [story, tell] of Object.entries(PAIR_STORIES)) {
        const pair = worker && { agent, worker, delegator };
        if (pair === undefined) results.skipped += 1;
        else jobs.push(() => results.record(name, other, story, () => tell(scene, pair)));
      }
    }
  }
  return jobs;
}

/**
 * Returns the stories in which a worker dies and a second worker takes over its task: one for each pair of
 * languages.
 */
function takeovers(scene: Scene, languages: readonly Programs[], results: Results): Job[] {
  return languages.flatMap((first, index) =>
    languages.map((second, next) => {
      // The rotation lets each delegator meet each worker, once as the worker that dies and once as its successor.
      const delegator = languages[(index + next) % languages.length] ?? first;
      const agent = `takeover-${first.name}-${second.name}`;
      const run = () => takeover(scene, agent, first.worker, second.worker, delegator.delegator);
      return () => results.record(`${first.name}, ${second.name}`, delegator.name, "takeover", run);
    }),
  );
}

/** Runs jobs, at most AT_ONCE at the same time. */
async function runAll(jobs: readonly Job[]): Promise<void> {
  const left = jobs.values();
  const runner = async () => {
    for (const job of left) await job();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runner));
}

const askedLanguages = process.argv.slice(2);
const chosen = LANGUAGES.filter(({ name }) => askedLanguages.length === 0 || askedLanguages.includes(name));
const presentLanguages = withToolchain(chosen);
const results = new Results();
execFileSync(process.execPath, ["tools/bundle.ts"], { stdio: "inherit" });
const scene = await Scene.open();
try {
  const languages: Programs[] = [];
  for (const language of presentLanguages) {
    const programs = await build(language, scene, results);
    if (programs !== undefined) languages.push(programs);
  }
  // A language without programs skips three stories for each pair of worker and delegator, and its takeovers.
  results.skipped += 4 * (chosen.length ** 2 - languages.length ** 2);
  const jobs = await pairs(scene, languages, results);
  await runAll([...jobs, ...takeovers(scene, languages, results)]);
} finally {
  await scene.close();
}
results.print();
if (results.failed > 0) process.exitCode = 1;
