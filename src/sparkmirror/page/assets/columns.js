// The columns of the tables. A row is [number, ...] with its values in the order of `rows.py`.

import { UNKNOWN, bytes, duration, number, short } from "./format.js";

// States in the order in which they need people.
export const STATES = [
  "parked", "refused", "can't be synced", "beyond the end", "late writers", "unknown", "waiting", "paused", "catching up", "copying",
  "deleted", "moved", "caught up", "synced", "done",
];

function rank(state) {
  const found = STATES.indexOf(state);
  return found < 0 ? STATES.length : found;
}

const text = (value) => (value === "" || value == null ? UNKNOWN : String(value));

function column(at, label, show, more = {}) {
  return { at, label, show, numeric: show !== text, ...more };
}

const STATE = column(1, "State", text, { sort: rank, state: true });
const LAG = { title: "Offsets at the source that are there and not copied", worstUnknown: true };
const lagCurve = { at: null, label: "Recent lag", curve: true, optional: true, numeric: false };

export const TABLES = {
  topics: {
    name: "Topics",
    order: [0, true],
    key: (row) => row[2],
    lag: (row) => row[6],
    opens: "partitions",
    columns: [
      STATE,
      column(2, "Topic", text, { name: true }),
      column(6, "Lag", short, LAG),
      lagCurve,
      column(7, "Oldest", duration, { title: "Age of the oldest record that is not copied", optional: true, worstUnknown: true }),
      column(8, "Records/s", short),
      column(9, "Bytes/s", bytes, { optional: true }),
      column(10, "Caught up in", duration, { optional: true }),
      column(4, "Partitions", number, { optional: true }),
      column(5, "Parked", number, { optional: true }),
      column(3, "At the target", text, { optional: true, wide: true }),
      column(11, "Why", text, { optional: true, wide: true }),
    ],
  },
  partitions: {
    name: "Partitions",
    order: [0, true],
    key: (row) => `${row[2]}-${row[3]}`,
    lag: (row) => row[6],
    columns: [
      STATE,
      column(2, "Topic", text, { name: true }),
      column(3, "Partition", number, { short: "P." }),
      column(6, "Lag", short, LAG),
      lagCurve,
      column(7, "Oldest", duration, { optional: true, worstUnknown: true }),
      column(8, "Records/s", short),
      column(9, "Bytes/s", bytes, { optional: true }),
      column(10, "Caught up in", duration, { optional: true }),
      column(4, "Position", number, { title: "Offset at the source that is copied next", optional: true }),
      column(5, "End", number, { optional: true }),
      column(11, "At the target", number, { title: "Offset where the next record lands", optional: true }),
      column(12, "Latency ms", short, { optional: true }),
      column(13, "Task", number, { optional: true }),
      column(14, "Leader", number, { optional: true }),
      column(15, "Why", text, { optional: true, wide: true }),
    ],
  },
  groups: {
    name: "Groups",
    order: [0, true],
    key: (row) => row[2],
    opens: "positions",
    columns: [
      STATE,
      column(2, "Group", text, { name: true }),
      column(9, "If it moved now", text, { wide: true }),
      column(6, "Skips", number, { title: "Records it would skip", worstUnknown: true }),
      column(7, "Reads again", number, { title: "Records it would read again", worstUnknown: true }),
      column(3, "Partitions", number, { optional: true }),
      column(4, "Lag at the source", number, { optional: true }),
      column(5, "Lag at the target", number, { optional: true }),
      column(8, "At the target since", (value) => (value == null ? UNKNOWN : `${duration(value)} ago`), {
        title: "When its offsets were last seen to be there", optional: true,
      }),
    ],
  },
  positions: {
    name: "Positions",
    order: [1, true],
    key: (row) => `${row[2]}-${row[3]}`,
    columns: [
      STATE,
      column(2, "Topic", text, { name: true }),
      column(3, "Partition", number, { short: "P." }),
      column(4, "Offset at the source", number),
      column(5, "Lag there", number, { optional: true }),
      column(6, "Offset at the target", number),
      column(7, "Lag at the target", number, { optional: true }),
      column(8, "Skips", number, { worstUnknown: true }),
      column(9, "Reads again", number, { worstUnknown: true }),
    ],
  },
};
