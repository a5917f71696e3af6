import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { useMemo, useState } from "react";
import { Ask } from "../../parts/dialog.tsx";
import { ValueView } from "../../parts/json.tsx";
import { Text } from "../../parts/text.tsx";
import { actionsOf } from "../../rules/task-status.ts";

type Action = "cancel" | "suspend" | "resume" | "answer";

const LABELS = { answer: "Answer", suspend: "Suspend", resume: "Resume", cancel: "Cancel task" } as const;

interface ActionProps {
  readonly task: Task;
  readonly onDone: () => void;
}

/** Shows the actions that the task's status allows. Each action opens a dialog. */
export function TaskActionsRow({ task, onDone }: ActionProps) {
  const [askedAction, setAsked] = useState<Action>();
  const possible = actionsOf(task.status);
  const shownActions = (Object.keys(LABELS) as Action[]).filter((action) => possible[action]);
  if (shownActions.length === 0 && askedAction === undefined) return null;
  return (
    <div className="row wrap actions">
      {shownActions.map((action) => (
        <button
          key={action}
          type="button"
          className={`button ${action === "cancel" ? "danger-quiet" : action === "answer" ? "primary" : ""}`}
          onClick={() => setAsked(action)}
        >
          {LABELS[action]}
        </button>
      ))}
      {askedAction !== undefined && (
        <TaskDialog action={askedAction} task={task} onDone={onDone} onClose={() => setAsked(undefined)} />
      )}
    </div>
  );
}

function TaskDialog({
  action,
  task,
  onDone,
  onClose,
}: ActionProps & { readonly action: Action; readonly onClose: () => void }) {
  const transport = useTransport();
  const client = useMemo(() => createClient(TaskService, transport), [transport]);
  const [requestId] = useState(() => crypto.randomUUID());
  const { id: taskId } = task;
  const ask = { title: LABELS[action], act: LABELS[action], onClose };
  const then = async (call: Promise<unknown>) => {
    await call;
    onDone();
  };
  switch (action) {
    case "cancel":
      return (
        <Ask
          {...ask}
          isDangerous
          onAct={(form) => {
            const seconds = Number(form.get("grace") ?? 0);
            const grace = seconds > 0 ? { grace: durationFromMs(seconds * 1_000) } : {};
            return then(client.cancelTask({ taskId, reason: textOf(form, "reason"), ...grace }));
          }}
        >
          <p>The task ends, and all its parts with it. A cancelled task cannot continue.</p>
          <Reason />
          <label className="field">
            Grace period of the worker (seconds)
            <input name="grace" type="number" min={0} max={3600} defaultValue={0} />
          </label>
        </Ask>
      );
    case "suspend":
      return (
        <Ask {...ask} onAct={(form) => then(client.suspendTask({ taskId, reason: textOf(form, "reason") }))}>
          <p>The worker saves a checkpoint at its next heartbeat and releases the task.</p>
          <Reason />
        </Ask>
      );
    case "resume":
      return (
        <Ask {...ask} onAct={() => then(client.resumeTask({ taskId, requestId }))}>
          <p>
            The task returns to the queue and continues{" "}
            {task.checkpointAvailable ? "from its checkpoint" : "from the start"}.
          </p>
        </Ask>
      );
    case "answer":
      return (
        <Ask
          {...ask}
          onAct={(form) => {
            const input = fromJson(ValueSchema, answerOf(textOf(form, "answer")));
            return then(client.provideInput({ taskId, requestId, input }));
          }}
        >
          <p>
            <Text value={task.question?.prompt ?? ""} />
          </p>
          {task.question?.details !== undefined && (
            <ValueView value={task.question.details} label="Details" />
          )}
          <label className="field">
            Answer (JSON, or plain text)
            <textarea name="answer" rows={5} required />
          </label>
        </Ask>
      );
  }
}

function Reason() {
  return (
    <label className="field">
      Reason
      <input name="reason" maxLength={1000} />
    </label>
  );
}

function textOf(form: FormData, name: string): string {
  return String(form.get(name) ?? "");
}

/** Returns the user's answer as JSON. If the text is not valid JSON, returns the text as a string. */
function answerOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
