import { differencesOf } from "../rules/differences.ts";
import { Line, Text } from "./text.tsx";

/** Shows each member in which two documents differ, with its old and its new value. */
export function Differences({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const differences = differencesOf(before, after);
  if (differences.length === 0) return <p className="quiet">No differences</p>;
  return (
    <dl className="differences">
      {differences.map((each) => (
        <div key={each.path}>
          <dt>
            <code>
              <Text value={each.path || "whole document"} />
            </code>
          </dt>
          {each.before !== undefined && (
            <dd className="old">
              <span aria-hidden="true">−</span>
              <Line value={each.before} max={300} />
            </dd>
          )}
          {each.after !== undefined && (
            <dd className="new">
              <span aria-hidden="true">+</span>
              <Line value={each.after} max={300} />
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}
