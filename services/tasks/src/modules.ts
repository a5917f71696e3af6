import type { TasksModule } from "./core/index.ts";
import { executions } from "./executions/index.ts";
import { messages } from "./messages/index.ts";
import { push } from "./push/index.ts";
import { reviews } from "./reviews/index.ts";
import { sessions } from "./sessions/index.ts";

/** The modules beside the task engine, in the order in which they open and observe; they close in the reverse order. */
export const MODULES: readonly TasksModule[] = [executions, reviews, push, messages, sessions];
