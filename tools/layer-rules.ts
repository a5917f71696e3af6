import type { IForbiddenRuleType } from "dependency-cruiser";
import { MODULES, type Modules, NOT_IN_RULES, ROOMS, SEES_EVERYTHING } from "./rooms.ts";

/** Tests and test helpers; none of them is shipped. */
export const TESTS = "[.]test[.]ts$|(^|/)testing/";

const WORKSPACE = `^(${Object.keys(ROOMS).map(pattern).join("|")})/`;

/** Rules of dependency-cruiser for every file. */
export function fileRules(): IForbiddenRuleType[] {
  return [
    ...Object.entries(ROOMS).map(([room, allowed]) => roomRule(room, allowed)),
    {
      name: "leaves-the-workspace",
      comment: "a relative import stays in its workspace; import another workspace by its name",
      severity: "error",
      from: { path: WORKSPACE },
      to: { pathNot: "^$1/|node_modules/", dependencyTypes: ["local"], dependencyTypesNot: BY_NAME },
    },
    {
      name: "enters-a-workspace",
      comment: "files outside the workspaces import a workspace by its name",
      severity: "error",
      // The replacements of bench/parts/ have the types of the files that they replace.
      from: { pathNot: [WORKSPACE, "^bench/parts/libraries/"] },
      to: { path: WORKSPACE, pathNot: "^examples/", dependencyTypesNot: BY_NAME },
    },
    {
      name: "unresolved",
      comment: "every import leads to a file",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "undeclared",
      comment: "every package is among the dependencies of the workspace or of the root",
      severity: "error",
      from: { pathNot: `^(${SEES_EVERYTHING.join("|")})/` },
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    },
    ...pureRules(),
    {
      name: "wires-apart",
      comment: "wires do not import one another",
      severity: "error",
      from: { path: "^gateway/(?:src/)?wires/([^/]+)/" },
      to: { path: "^gateway/(?:src/)?wires/", pathNot: "^gateway/(?:src/)?wires/$1/" },
    },
    ...MODULES.flatMap(moduleRules),
  ];
}

/**
 * The rules against cycles in shipped files. Test helpers import the code under test, so cycles with their
 * folders are allowed.
 */
export function cycleRules(): IForbiddenRuleType[] {
  return [
    {
      name: "file-cycle",
      comment: "files do not import one another in a circle, types included",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "folder-cycle",
      comment: "folders do not import one another in a circle",
      severity: "error",
      scope: "folder",
      from: {},
      to: { circular: true },
    },
  ];
}

const BY_NAME: ["aliased-workspace"] = ["aliased-workspace"];

function roomRule(room: string, allowed: readonly string[]): IForbiddenRuleType {
  const ownRoom = room.endsWith("/*") ? `${room.slice(0, -1)}$1` : room;
  return {
    name: `room:${room}`,
    comment: `${room} may import ${allowed.join(", ") || "no other workspace"}`,
    severity: "error",
    from: { path: `^${room.replace("*", "([^/]+)")}/` },
    to: { path: WORKSPACE, pathNot: `^(${[ownRoom, ...allowed.map(pattern)].join("|")})/` },
  };
}

function pureRules(): IForbiddenRuleType[] {
  const { workspaces, packages, folders } = NOT_IN_RULES;
  const rules = { path: "(^|/)rules/", pathNot: TESTS };
  const comment = "files under rules/ are pure: they import nothing that does I/O";
  return [
    {
      name: "rules-without-node",
      comment,
      severity: "error",
      from: rules,
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "rules-without-io",
      comment,
      severity: "error",
      from: rules,
      to: { path: `^(${workspaces.join("|")})/|(^|/)node_modules/(${packages.join("|")})/` },
    },
    {
      name: "rules-beside-io",
      comment,
      severity: "error",
      from: { ...rules, path: "^services/.*/rules/" },
      to: { path: `^services/.*/(${folders.join("|")})/` },
    },
  ];
}

function moduleRules({ folder, core, port, words, modules }: Modules): IForbiddenRuleType[] {
  const names = modules.join("|");
  return [
    {
      name: "core-without-modules",
      comment: `${folder}/${core} imports none of the modules beside it`,
      severity: "error",
      from: { path: `^${folder}/${core}/`, pathNot: TESTS },
      to: { path: `^${folder}/(${names})/` },
    },
    {
      name: "modules-by-the-port",
      comment: `a module imports ${folder}/${port}, and nothing else outside its own folder`,
      severity: "error",
      from: { path: `^${folder}/(${names})/`, pathNot: `${TESTS}|/rules/` },
      to: { path: `^${folder}/`, pathNot: `^${folder}/($1/|${port}$)` },
    },
    {
      name: "rules-by-the-words",
      comment: `the rules of a module import ${folder}/${words}, and nothing else outside their own folder`,
      severity: "error",
      from: { path: `^${folder}/(${names})/rules/`, pathNot: TESTS },
      to: { path: `^${folder}/`, pathNot: `^${folder}/($1/rules/|${words}$)` },
    },
  ];
}

/** Converts a folder pattern of ROOMS to a regular expression without capturing groups. */
function pattern(room: string): string {
  return room.replace("*", "[^/]+");
}
