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
const LABEL_WIDTH = 102;
const AXIS_TYPE_PX = 12;
/** In pixels, between the labels of an axis and the chart. */
const AXIS_GAP = 18;

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
          horizontal ? { width: LABEL_WIDTH + AXIS_GAP } : { width: widthOfTicks(axis), ...axis }
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
  return AXIS_GAP + Math.max(...ticks.map((tick) => widthOf(tickFormatter(tick))));
}

/** 1, 2 or 5 times a power of ten, and at least a micro-dollar, so that a few steps cover the span. */
function stepOf(span: number): number {
  const least = Math.max(span / STEPS_MAX, 1e-6);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

function shortened(label: string): string {
  if (widthOf(label) <= LABEL_WIDTH) return label;
  const letters = Array.from(label);
  while (letters.length > 0 && widthOf(`${letters.join('')}…`) > LABEL_WIDTH) letters.pop();
  return `${letters.join('')}…`;
}

const pen = document.createElement('canvas').getContext('2d');

/** In pixels, in the type of an axis. */
function widthOf(text: string): number {
  if (!pen) return text.length * AXIS_TYPE_PX;
  pen.font = `${AXIS_TYPE_PX}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}
