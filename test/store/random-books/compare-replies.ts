/** Compares the sums of what the replies said with the database, the charges that repeated requests named, and the costs of units. */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { row, sql } from '../../../src/store/database.ts';
import type { Books, Owner, Sums } from './books.ts';
import { assertCosts } from './by-units.ts';

const sumsRow = row(
  Type.Object({
    spent: Type.Integer(),
    refunded: Type.Integer(),
    adjusted: Type.Integer(),
    toppedUp: Type.Integer(),
  }),
);

export async function compareReplies(books: Books, when: string): Promise<void> {
  for (const owner of books.owners) {
    assert.deepEqual({ ...(await sumsOf(books, owner)) }, owner.sums, `the replies ${when}`);
  }
  for (const { hash, chargeId, cardVersion } of books.repetitions) {
    assert.equal(chargeId, books.chargeOfHash.get(hash), `a repetition ${when}`);
    assert.equal(cardVersion, books.cardOfCharge.get(chargeId) ?? 0, `a repetition ${when}`);
  }
  await assertCosts(books, when);
}

function sumsOf({ database }: Books, { view }: Owner): Promise<Sums> {
  return database.one(sql.type(sumsRow)`
    select spent_micros as spent, ${sumOf('charge_refund')} as refunded,
      ${sumOf('adjustment')} as adjusted, ${sumOf('top_up')} as "toppedUp"
    from farebox.consumers c where ledger = ${view.ledger} and id = ${view.consumerId}
  `);
}

const sumOf = (kind: string) => sql.fragment`
  (select coalesce(sum(amount_micros), 0)::int8 from farebox.movements
    where ledger = c.ledger and consumer_id = c.id and kind = ${kind})
`;
