import { conversations } from "./conversations/index.ts";
import type { TasksModule } from "./core/index.ts";
import { executions } from "./executions/index.ts";
import { messages } from "./messages/index.ts";
import { push } from "./push/index.ts";
import { reviews } from "./reviews/index.ts";
import { sessions } from "./sessions/index.ts";

/**
 * The modules that extend the task engine. They open and observe task changes in this order, and close in reverse
 * order.
 */
export const MODULES: readonly TasksModule[] = [conversations, executions, reviews, push, messages, sessions];
