/** The chart. It has its own file, loaded on demand: its library is as large as the rest of the console. */
import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { usd } from '../format.ts';
import type { Bar } from './bars.tsx';

interface ChartProps {
  readonly bars: readonly Bar[];
  readonly of: string;
  readonly horizontal: boolean;
  readonly height: number;
}

export default function Chart({ bars, of, horizontal, height }: ChartProps) {
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
        yAxisProps={{ width: horizontal ? 120 : 70 }}
        maxBarWidth={28}
        barChartProps={{ accessibilityLayer: false }}
        barProps={{ isAnimationActive: false, radius: 3 }}
      />
    </div>
  );
}

function shortened(label: string): string {
  const letters = Array.from(label);
  return letters.length > 18 ? `${letters.slice(0, 17).join('')}…` : label;
}
