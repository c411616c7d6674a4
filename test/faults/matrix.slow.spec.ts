/** A few cells of the crash matrix; `node test/faults/matrix-long.ts` runs all of them. */
import { allCells, nameOf, openGround, type Ground } from './matrix.ts';

/** One for each part, at steps where its death hurts, and one that is paused. */
const CELLS = [
  'checkout: the API is killed when the report is kept',
  'checkout: the worker is killed when the credit is committed',
  'checkout: the simulator is killed when POST /pay/ is done and not answered',
  'direct: Temporal is killed when the workflow takes it up',
  'direct: Postgres is killed when the payment is noted',
  'direct: the worker is killed when POST /v1/payment_intents/ is done and not answered',
  'refund: the worker is killed when POST /v1/refunds is done and not answered',
  'dispute: Postgres is killed when the reversal is written down',
  'direct: the worker stands still when POST /v1/payment_intents/ is done and not answered',
];

describe('the money of a top-up moves exactly once:', () => {
  let ground: Ground;

  before(async () => {
    ground = await openGround();
  });
  after(() => ground?.close());

  for (const name of CELLS) {
    it(name, async () => {
      const cell = allCells().find((each) => nameOf(each) === name);
      if (!cell) throw new Error(`there is no such cell: ${name}`);
      await ground.run(cell);
    });
  }
});
