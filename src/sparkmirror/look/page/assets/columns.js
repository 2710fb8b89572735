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

// Widths are in pixels; a column without a width takes what is left, `least` at least.
const STATE = column(1, "State", text, { sort: rank, state: true, width: 122 });
const LAG = { title: "Offsets at the source that are there and not copied", worstUnknown: true, width: 78 };
const OLDEST = column(7, "Oldest", duration, { title: "Age of the oldest record that is not copied", optional: true, worstUnknown: true, width: 106 });
const PER_SECOND = column(8, "Records/s", short, { width: 86 });
const BYTES = column(9, "Bytes/s", bytes, { optional: true, width: 88 });
const ETA = column(10, "Caught up in", duration, { optional: true, width: 98 });
const why = (at) => column(at, "Why", text, { optional: true, wide: true, least: 280 });
const lagCurve = { at: null, label: "Recent lag", curve: true, optional: true, numeric: false, width: 116 };

export const TABLES = {
  topics: {
    name: "Topics",
    order: [0, true],
    key: (row) => row[2],
    lag: (row) => row[6],
    opens: "partitions",
    columns: [
      STATE,
      column(2, "Topic", text, { name: true, width: 200 }),
      column(6, "Lag", short, LAG),
      OLDEST,
      why(11),
      PER_SECOND,
      ETA,
      column(3, "At the target", text, { optional: true, wide: true, width: 190 }),
      lagCurve,
      BYTES,
      column(4, "Partitions", number, { optional: true, width: 84 }),
      column(5, "Parked", number, { optional: true, width: 70 }),
    ],
  },
  partitions: {
    name: "Partitions",
    order: [0, true],
    key: (row) => `${row[2]}-${row[3]}`,
    lag: (row) => row[6],
    columns: [
      STATE,
      column(2, "Topic", text, { name: true, width: 180 }),
      column(3, "Partition", number, { short: "P.", width: 76 }),
      column(6, "Lag", short, LAG),
      OLDEST,
      why(15),
      PER_SECOND,
      column(11, "At the target", number, { title: "Offset where the next record lands", optional: true, width: 100 }),
      column(4, "Position", number, { title: "Offset at the source that is copied next", optional: true, width: 100 }),
      column(5, "End", number, { optional: true, width: 100 }),
      ETA,
      BYTES,
      lagCurve,
      column(12, "Latency ms", short, { optional: true, width: 90 }),
      column(13, "Task", number, { optional: true, width: 60 }),
      column(14, "Leader", number, { optional: true, width: 70 }),
    ],
  },
  groups: {
    name: "Groups",
    order: [0, true],
    key: (row) => row[2],
    opens: "positions",
    columns: [
      { ...STATE, width: 156 },
      column(2, "Group", text, { name: true, width: 240 }),
      column(9, "If it moved now", text, { wide: true, least: 300 }),
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
      { ...STATE, width: 156 },
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
