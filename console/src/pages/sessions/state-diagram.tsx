import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { Card } from "../../parts/facts.tsx";
import { Line } from "../../parts/text.tsx";
import { enumWord } from "../../rules/enum-word.ts";
import {
  type SessionStep,
  STATE_PLACES,
  type StateLine,
  sessionMoves,
  stateLines,
} from "../../rules/session-states.ts";
import "../../styles/states.css";

/** Sizes of the diagram's parts, in units of its SVG. */
const COLUMN = 122;
const BOX = { width: 94, height: 30 } as const;
const TOP = 64;
const ROW = 84;
const SIZE = { width: 6 * COLUMN + BOX.width + 8, height: TOP + ROW + BOX.height + 4 } as const;

const LINES = stateLines();

interface StateDiagramProps {
  readonly state: SessionState;
  readonly steps: readonly SessionStep[];
}

/** Shows the states that ASP defines, and the transitions that this session made. */
export function StateDiagram({ state, steps }: StateDiagramProps) {
  const moves = sessionMoves(steps);
  const madeMoves = new Set(moves.map((move) => `${move.from} ${move.state}`));
  const isMade = ({ from, to }: StateLine) =>
    madeMoves.has(`${from} ${to}`) || madeMoves.has(`${to} ${from}`);
  const presentState = enumWord(SessionState, state);
  return (
    <Card title="States" aside={<span className="quiet small-text">{moves.length} transitions</span>}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <section className="states" tabIndex={0} aria-label="Diagram of the states">
        <svg
          role="img"
          aria-label={`State diagram: the session is ${presentState.toLowerCase()}`}
          viewBox={`0 0 ${SIZE.width} ${SIZE.height}`}
          width={SIZE.width}
          height={SIZE.height}
        >
          <defs>
            <Arrow id="arrow" />
            <Arrow id="arrow-made" />
          </defs>
          {LINES.map((line) => (
            <Transition key={`${line.from} ${line.to}`} line={line} isMade={isMade(line)} />
          ))}
          {[...STATE_PLACES.keys()].map((each) => (
            <State
              key={each}
              state={each}
              isPresent={each === state}
              isPassed={moves.some((move) => move.from === each)}
            />
          ))}
        </svg>
      </section>
      <ol className="plain-list moves" aria-label="Transitions">
        {moves.map(({ from, state: to, ordinal, sender }) => (
          <li key={`${ordinal} ${to}`} className="row wrap">
            <span>
              {enumWord(SessionState, from)} → {enumWord(SessionState, to)}
            </span>
            <span className="quiet small-text row">
              {ordinal === 0 ? "time ran out" : `message ${ordinal} of`}
              <Line value={sender} max={60} />
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Arrow({ id }: { readonly id: string }) {
  return (
    <marker
      id={id}
      className={`state-${id}`}
      viewBox="0 0 8 8"
      refX="7"
      refY="4"
      markerWidth="7"
      markerHeight="7"
      orient="auto-start-reverse"
    >
      <path d="M0 0 8 4 0 8z" />
    </marker>
  );
}

function Transition({ line, isMade }: { readonly line: StateLine; readonly isMade: boolean }) {
  const arrow = `url(#${isMade ? "arrow-made" : "arrow"})`;
  return (
    <path
      className={isMade ? "state-line made" : "state-line"}
      d={pathOf(line)}
      markerEnd={arrow}
      {...(line.isMutual && { markerStart: arrow })}
    />
  );
}

interface StateProps {
  readonly state: SessionState;
  readonly isPresent: boolean;
  readonly isPassed: boolean;
}

function State({ state, isPresent, isPassed }: StateProps) {
  const [x, y] = centerOf(state);
  return (
    <g className={`state-box${isPresent ? " present" : isPassed ? " passed" : ""}`}>
      <rect x={x - BOX.width / 2} y={y - BOX.height / 2} width={BOX.width} height={BOX.height} rx={8} />
      <text x={x} y={y} textAnchor="middle" dominantBaseline="central">
        {enumWord(SessionState, state)}
      </text>
    </g>
  );
}

function centerOf(state: SessionState): readonly [x: number, y: number] {
  const [column, row] = STATE_PLACES.get(state) ?? [0, 0];
  return [4 + BOX.width / 2 + column * COLUMN, TOP + row * ROW];
}

/**
 * Returns the SVG path of a line. Between neighbouring states the line is straight; otherwise it is an arc above the
 * states between them.
 */
function pathOf({ from, to }: StateLine): string {
  const [x1, y1] = centerOf(from);
  const [x2, y2] = centerOf(to);
  const side = Math.sign(x2 - x1);
  if (y1 === y2 && Math.abs(x2 - x1) <= COLUMN) {
    return `M${x1 + (side * BOX.width) / 2} ${y1} L${x2 - (side * BOX.width) / 2} ${y2}`;
  }
  if (y1 === y2) {
    const height = 18 + Math.abs(x2 - x1) / 9;
    const top = y1 - BOX.height / 2;
    return `M${x1} ${top} C${x1} ${top - height} ${x2} ${top - height} ${x2} ${top}`;
  }
  const up = Math.sign(y2 - y1) * (BOX.height / 2);
  return `M${x1} ${y1 + up} L${x2 - side * 20} ${y2 - up}`;
}
