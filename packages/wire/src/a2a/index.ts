/** Tasks of the platform and their events in the form of A2A 1.0. */
export { inModes } from "./output-modes.ts";
export {
  MAX_ARTIFACTS,
  MAX_PARTS,
  type Place,
  partsIn,
  RESULT_ID,
  resultArtifacts,
  textsOf,
  valueOfParts,
} from "./parts.ts";
export { isInterrupted, isSettled, isTerminal, STATES, statusesOf } from "./states.ts";
export {
  type Change,
  changed,
  changeOf,
  createdTask,
  replyOf,
  toA2aTask,
  toConversation,
  toStream,
  withHistory,
} from "./tasks.ts";
