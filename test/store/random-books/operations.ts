/** The operations of the random program, and how often each is drawn. */
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import type { Random } from '../../support/random.ts';
import { approve, endAnswered } from './approvals.ts';
import { adjust, setThreshold } from './balance.ts';
import type { Operation } from './books.ts';
import * as budgets from './budgets.ts';
import { changeCard } from './by-units.ts';
import { charge, refund } from './charges.ts';
import { enter, expire } from './holds.ts';
import { lease, renew, settle } from './leases.ts';
import { askRefund, dismiss, report } from './reversals.ts';
import * as topUps from './top-ups.ts';

export interface Card {
  readonly name: string;
  readonly run: Operation;
}

/** `cards`: in the pack from which they are drawn. */
const OPERATIONS: Readonly<Record<string, Omit<Card, 'name'> & { readonly cards: number }>> = {
  charge: { cards: 18, run: charge },
  changeCard: { cards: 4, run: changeCard },
  refund: { cards: 12, run: refund },
  enter: { cards: 20, run: enter },
  expire: { cards: 4, run: expire },
  lease: { cards: 6, run: lease },
  settle: { cards: 10, run: settle },
  renew: { cards: 5, run: renew },
  adjust: { cards: 6, run: adjust },
  setThreshold: { cards: 2, run: setThreshold },
  addNode: { cards: 1, run: budgets.addNode },
  addKey: { cards: 1, run: budgets.addKey },
  endKey: { cards: 4, run: budgets.endKey },
  changeLimits: { cards: 5, run: budgets.changeLimits },
  close: { cards: 2, run: budgets.close },
  setDayLimit: { cards: 2, run: budgets.setDayLimit },
  approve: { cards: 14, run: approve },
  endAnswered: { cards: 1, run: endAnswered },
  topUp: { cards: 8, run: topUps.topUp },
  setAutomatic: { cards: 6, run: topUps.setAutomatic },
  takeUp: { cards: 8, run: topUps.takeUp },
  direct: { cards: 9, run: topUps.direct },
  end: { cards: 10, run: topUps.end },
  askRefund: { cards: 5, run: askRefund },
  report: { cards: 12, run: report },
  dismiss: { cards: 5, run: dismiss },
  rollUp: {
    cards: 4,
    run: async (books) => {
      const { moved } = await rollUp(books.database);
      books.count(`roll up ${moved > 0 ? 'done' : 'nothing'}`);
    },
  },
};

/** Draws cards from a shuffled pack, and shuffles it again when it is used up, so that none is late. */
export function packOf(random: Random): () => Card {
  const cards = Object.entries(OPERATIONS).flatMap(([name, { cards, run }]) =>
    Array.from({ length: cards }, () => ({ name, run })),
  );
  const pack: Card[] = [];
  return () => {
    if (pack.length === 0) pack.push(...cards);
    const [card] = pack.splice(random.between(0, pack.length - 1), 1);
    if (!card) throw new Error('the pack is empty');
    return card;
  };
}
