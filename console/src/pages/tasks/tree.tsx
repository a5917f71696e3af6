import { useQuery } from "@connectrpc/connect-query";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  Background,
  Controls,
  type Edge,
  Handle,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import { useMemo } from "react";
import { Card, Tag } from "../../parts/facts.tsx";
import { Empty, Loading, Refused } from "../../parts/states.tsx";
import { Line } from "../../parts/text.tsx";
import { hashOf } from "../../rules/route.ts";
import { statusFacts } from "../../rules/task-status.ts";
import { placedTree } from "../../rules/tree.ts";
import "@xyflow/react/dist/base.css";
import "../../styles/tree.css";
import { Bar } from "./list.tsx";

/** Milliseconds between two reads of the tree. */
const READ_MS = 1_000;

/** Maximum number of tasks below the root task that the graph shows. */
const MAX_PARTS = 300;

type TaskNode = Node<{ task: Task; isShown: boolean }, "task">;

/** Shows a graph of the task's root task and all tasks below that root task. Reads these tasks again at intervals. */
export default function Tree({ task }: { readonly task: Task }) {
  const rootTaskId = task.rootTaskId || task.id;
  const root = useQuery(TaskService.method.getTask, { taskId: rootTaskId }, { refetchInterval: READ_MS });
  const parts = useQuery(
    TaskService.method.listTasks,
    { rootTaskId, pageSize: MAX_PARTS },
    { refetchInterval: READ_MS },
  );
  const tasks = useMemo(() => {
    const knownTasks = [root.data?.task ?? task, task, ...(parts.data?.tasks ?? [])];
    return [...new Map(knownTasks.map((each) => [each.id, each])).values()];
  }, [root.data, parts.data, task]);
  const { nodes, edges } = useMemo(() => graphOf(tasks, task.id), [tasks, task.id]);
  if (parts.isPending) return <Loading what="the tree" />;
  if (parts.isError) return <Refused error={parts.error} />;
  if (tasks.length === 1) return <Empty title="No parts">This task was not divided.</Empty>;
  return (
    <Card title="Tree of parts" aside={<span className="quiet small-text">{tasks.length} tasks</span>}>
      <div className="tree">
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          fitView
          minZoom={0.1}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          proOptions={{ hideAttribution: true }}
        >
          <Background />
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      {parts.data.nextPageToken !== "" && (
        <p className="quiet small-text">Only {MAX_PARTS} parts are shown.</p>
      )}
    </Card>
  );
}

function TaskNodeView({ data: { task, isShown } }: NodeProps<TaskNode>) {
  const { label, tone } = statusFacts(task.status);
  return (
    <a className={`tree-node${isShown ? " shown" : ""}`} href={hashOf({ page: "tasks", id: task.id })}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="tree-title">
        <Line value={task.description || task.capabilityId || task.id} max={60} />
      </span>
      <span className="row">
        <Tag tone={tone}>{label}</Tag>
        <Line value={task.agentId} max={24} />
      </span>
      <Bar progress={task.progress} status={task.status} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </a>
  );
}

const NODE_TYPES = { task: TaskNodeView };

function graphOf(tasks: readonly Task[], shownId: string): { nodes: TaskNode[]; edges: Edge[] } {
  const placed = placedTree(tasks.map((task) => ({ id: task.id, parentId: task.parentTaskId, task })));
  const knownIds = new Set(tasks.map(({ id }) => id));
  return {
    nodes: placed.map(({ node: { id, task }, x, y }) => ({
      id,
      type: "task",
      position: { x, y },
      data: { task, isShown: id === shownId },
    })),
    edges: tasks
      .filter(({ parentTaskId }) => knownIds.has(parentTaskId))
      .map(({ id, parentTaskId, status }) => ({
        id: `${parentTaskId} ${id}`,
        source: parentTaskId,
        target: id,
        animated: statusFacts(status).tone === "active",
      })),
  };
}
