import type { Place } from "../rules/route.ts";
import { TaskList } from "./tasks/list.tsx";
import { TaskPage } from "./tasks/task.tsx";

export default function Tasks({ place }: { readonly place: Place }) {
  return place.id === "" ? <TaskList query={place.query} /> : <TaskPage key={place.id} id={place.id} />;
}
