/**
 * The token capability that a caller needs to delegate: to create a task, request an execution, or send a CAP
 * delegation.
 */
export const DELEGATE_RIGHT = { namespace: "depute:tasks", action: "delegate" } as const;
