import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Returns a path with all symbolic links resolved. If the file does not exist yet, the links of its folder are
 * resolved. Returns undefined if the system cannot resolve a link.
 */
export async function realPath(path: string): Promise<string | undefined> {
  let rest = "";
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realpath(at), rest);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "ENOENT" || at === dirname(at)) return undefined;
      rest = join(basename(at), rest);
    }
  }
}
