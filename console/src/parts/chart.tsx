/** The chart. It has its own file, loaded on demand: its library is as large as the rest of the console. */
import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { decimalsOf, usd } from '../format.ts';

export interface Bar {
  readonly label: string;
  readonly amount: number;
}

interface ChartProps {
  readonly bars: readonly Bar[];
  readonly of: string;
  readonly horizontal: boolean;
  readonly height: number;
}

const STEPS_MAX = 4;
const LABEL_WIDTH = 108;
const WIDE = /[^ -~]|[mwMW@]/u;

export default function Chart({ bars, of, horizontal, height }: ChartProps) {
  const axis = axisOf(bars.map(({ amount }) => amount));
  return (
    <div role="img" aria-label={`${of}, as a bar chart. The table has the same numbers.`}>
      <BarChart
        h={height}
        data={bars.map(({ label, amount }) => ({ label: shortened(label), [of]: amount }))}
        dataKey="label"
        series={[{ name: of, color: 'indigo.6' }]}
        orientation={horizontal ? 'vertical' : 'horizontal'}
        gridAxis={horizontal ? 'y' : 'x'}
        tickLine="none"
        valueFormatter={(value) => usd(value)}
        xAxisProps={horizontal ? axis : {}}
        yAxisProps={
          horizontal ? { width: LABEL_WIDTH + 12 } : { width: widthOfTicks(axis), ...axis }
        }
        maxBarWidth={28}
        barChartProps={{ accessibilityLayer: false }}
        barProps={{ isAnimationActive: false, radius: 3 }}
      />
    </div>
  );
}

/** An axis from or to zero, with ticks at whole steps that have the same decimals. */
function axisOf(amounts: readonly number[]) {
  const [low, high] = [Math.min(0, ...amounts), Math.max(0, ...amounts)];
  const step = stepOf(high - low);
  const first = Math.floor(low / step);
  const ticks = Array.from(
    { length: Math.ceil(high / step) - first + 1 },
    (_, n) => (first + n) * step,
  );
  const tickFormatter = (value: number) => usd(value, decimalsOf(step));
  return { ticks, domain: [ticks[0] ?? 0, ticks.at(-1) ?? 0], tickFormatter };
}

function widthOfTicks({ ticks, tickFormatter }: ReturnType<typeof axisOf>): number {
  return 14 + Math.max(...ticks.map((tick) => widthOf(tickFormatter(tick))));
}

/** 1, 2 or 5 times a power of ten, and at least a micro-dollar, so that a few steps cover the span. */
function stepOf(span: number): number {
  const least = Math.max(span / STEPS_MAX, 1e-6);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

function shortened(label: string): string {
  let [shown, width] = ['', 0];
  for (const letter of label) {
    width += widthOf(letter);
    if (width > LABEL_WIDTH) return `${shown}…`;
    shown += letter;
  }
  return label;
}

/** About, in the pixels of an axis. */
function widthOf(text: string): number {
  return Array.from(text, (letter) => (WIDE.test(letter) ? 11 : 7)).reduce((a, b) => a + b, 0);
}
