import { globSync, readFileSync } from "node:fs";

/** A page of the documentation. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A block of shell commands. */
export interface Block {
  readonly commands: string;
  /**
   * The reason why the tests do not run the block. A comment before the block gives the reason: `<!-- not run:
   * REASON -->`.
   */
  readonly notRun?: string;
  /**
   * The program that the block needs on the PATH. A comment before the block names the program: `<!-- needs:
   * PROGRAM -->`.
   */
  readonly needs?: string;
}

const PAGES = [
  "*.md",
  "docs/**/*.md",
  "packages/*/*.md",
  "services/*/*.md",
  "gateway/*.md",
  "cli/*.md",
  "examples/**/*.md",
];

/** Returns every page of the project. */
export function pages(): Page[] {
  return globSync(PAGES, { exclude: ["**/node_modules/**", "**/dist/**"] })
    .sort()
    .map((path) => ({ path, text: readFileSync(path, "utf8") }));
}

/** The blocks of shell commands of a page, in order. */
export function blocksOf({ text }: Page): Block[] {
  const blocks = text.matchAll(/(?:<!-- (not run|needs): ([^>]+) -->\n+)?```sh\n([\s\S]*?)```/g);
  return [...blocks].map(([, marker, note = "", commands = ""]) => ({
    commands,
    ...(marker === "not run" && { notRun: note }),
    ...(marker === "needs" && { needs: note }),
  }));
}

/** Returns the names by which links reach the headings of a page. */
export function anchorsOf({ text }: Page): string[] {
  const headings = text.replace(/```[\s\S]*?```/g, "").matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Returns the relative links of a page. */
export function linksOf({ text }: Page): string[] {
  const links = text.replace(/```[\s\S]*?```/g, "").matchAll(/\]\(([^)\s]+)\)/g);
  return [...links].map(([, link = ""]) => link).filter((link) => !/^(https?:|mailto:)/.test(link));
}
