/** What all tools or one earned, in total and today: two figures of a row. */
import type { Earnings } from '../answers.ts';
import { Figure } from './page.tsx';
import { Money } from './values.tsx';

type EarningsFiguresProps = Pick<Earnings, 'totalEarnings' | 'todayEarnings'>;

export function EarningsFigures({ totalEarnings, todayEarnings }: EarningsFiguresProps) {
  return (
    <>
      <Figure label="Total earnings">
        <Money dollars={totalEarnings} />
      </Figure>
      <Figure label="Today’s revenue (UTC)">
        <Money dollars={todayEarnings} />
      </Figure>
    </>
  );
}
