// A time and that of its base, which was measured alternately, with their comparison.

import { figuresText, medianText } from "../format";

/** A time, and that of its base, which was measured alternately. */
export interface TimeComparison {
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  times_us: number[];
  base_median_us: number | null;
  base_low_us: number | null;
  base_high_us: number | null;
  base_times_us: number[];
  verdict: string;
}

/** Returns the median and the quartiles; "" without a time. */
export function timeText({
  median_us,
  low_us,
  high_us,
  times_us,
}: Omit<TimeComparison, `base_${string}` | "verdict">): string {
  return median_us === null || low_us === null || high_us === null
    ? ""
    : medianText({ median_us, low_us, high_us, times_us });
}

/** Returns the median and the quartiles of the base; "" without a time. */
export function baseText(variant: TimeComparison): string {
  const { base_median_us: median_us, base_low_us: low_us, base_high_us: high_us, base_times_us: times_us } = variant;
  return timeText({ median_us, low_us, high_us, times_us });
}

/**
 * Returns "1.39× faster than as captured", without a ratio if the spread explains it. Mirrors ratio_text in Python.
 * With the base "" it returns "1.39× faster", for a place beside the time of the base.
 */
export function ratioText({ median_us, base_median_us, verdict }: TimeComparison, base = "as captured"): string {
  if (!median_us || !base_median_us) return "";
  if (base === "" && verdict === "noise") return "no difference beyond the spread";
  if (base === "" && verdict === "unknown") return "too few samples to compare";
  if (verdict === "noise") return `no difference from ${base} beyond the spread`;
  if (verdict === "unknown") return `too few samples to compare with ${base}`;
  const ratio = base_median_us / median_us;
  const words = verdict === "faster" ? `${figuresText(ratio)}× faster` : `${figuresText(1 / ratio)}× slower`;
  return base === "" ? words : `${words} than ${base}`;
}
