import "uplot/dist/uPlot.min.css";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";

export type Series = { label: string; values: (number | null)[] };
export type ChartKind = "bar" | "line" | "points";
export type ChartProps = {
  kind: ChartKind;
  labels: string[];
  series: Series[];
  height?: number;
  label: string;
  /** The names of the x and the y axis; "" for none. */
  axes?: [string, string];
};

const NO_NAMES: [string, string] = ["", ""];
const GROUP_WIDTH = 0.6;
/** Distances of ticks where all values are whole numbers: 1, 2, 5, 10, … */
const WHOLE_STEPS = Array.from({ length: 16 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();
const COLORS = ["#0f9c8c", "#e07a3f", "#5b7fd9", "#b4569e", "#8a9a2b"];

/** A chart of values over categories or times, named by their labels. */
export default function Chart({ kind, labels, series, height = 260, label, axes = NO_NAMES }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme("light");
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const [text, line] = scheme === "dark" ? ["#9ba3ab", "#2b3138"] : ["#59636c", "#e3e6e9"];
    const axis = {
      stroke: text,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      font: "11px system-ui",
      labelFont: "11px system-ui",
      labelSize: 18,
    };
    const isWhole = series.every(({ values }) => values.every(Number.isInteger));
    const [xName, yName] = axes;
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        scales: { x: { time: false, range: [-0.5, labels.length - 0.5] }, y: { range: getRange } },
        legend: { show: series.length > 1, live: false },
        cursor: { y: false },
        axes: [
          {
            ...axis,
            grid: { show: false },
            label: xName || undefined,
            size: 30,
            splits: () => pickTicks(labels.length, element.clientWidth),
            values: (_, ticks) => ticks.map((tick) => shorten(labels[tick] ?? "")),
          },
          {
            ...axis,
            label: yName || undefined,
            size: 58,
            incrs: isWhole ? WHOLE_STEPS : undefined,
            values: (_, ticks) => ticks.map((tick) => TICKS.format(tick)),
          },
        ],
        series: [
          { label: "", value: (_, index) => (index === null ? "" : (labels[index] ?? "")) },
          ...series.map(({ label: name }, index) => createSeries(kind, name, index, series.length)),
        ],
      },
      [labels.map((_, index) => index), ...series.map(({ values }) => values)],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [kind, labels, series, height, scheme, axes]);
  return <div ref={host} role="img" aria-label={label} style={{ width: "100%", minHeight: height }} />;
}

function createSeries(kind: ChartKind, label: string, index: number, count: number): uPlot.Series {
  const color = COLORS[index % COLORS.length] as string;
  if (kind === "bar") {
    return {
      label,
      stroke: color,
      width: 0,
      fill: color,
      points: { show: false },
      paths: count > 1 ? createGroupedBars(index, count) : uPlot.paths.bars?.({ size: [GROUP_WIDTH, 64] }),
    };
  }
  if (kind === "line") return { label, stroke: color, width: 2, fill: `${color}18`, points: { size: 4 } };
  return {
    label,
    stroke: color,
    fill: color,
    paths: () => null,
    points: { show: true, size: 7, fill: color },
  };
}

/** Draw the bars of one series of several, next to those of the others. */
function createGroupedBars(index: number, count: number) {
  const width = GROUP_WIDTH / count;
  const offset = index * width - GROUP_WIDTH / 2;
  return uPlot.paths.bars?.({
    disp: {
      x0: { unit: 1, values: ({ data }) => Array.from(data[0], (x) => x + offset) },
      size: { unit: 1, values: () => [width] },
    },
  });
}

function getRange(_: uPlot, low: number | null, high: number | null): [number, number] {
  const [bottom, top] = [Math.min(0, low ?? 0), Math.max(0, high ?? 1)];
  return [bottom, top === bottom ? bottom + 1 : top + (top - bottom) * 0.05];
}

function pickTicks(count: number, width: number): number[] {
  const step = Math.max(1, Math.ceil(count / Math.max(1, Math.floor(width / 90))));
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step);
}

function shorten(text: string): string {
  return text.length > 13 ? `${text.slice(0, 12)}…` : text;
}

const TICKS = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
