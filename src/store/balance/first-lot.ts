/**
 * Where to begin to read the lots of a consumer. Lots have no gaps, so those before the one that contains a position
 * end there or earlier, and a consumer may have very many of them: each refund of a charge makes one.
 */
import type { ConsumerRef } from './consumers.ts';
import { sql, type Fragment } from '../database.ts';

/**
 * Where the lot begins that contains this position of the axis of the consumer's spending: a probe of the index. Where
 * all is spent, it is the last lot.
 */
export function firstLotAt(ledger: Fragment, consumerId: Fragment, position: Fragment) {
  return sql.fragment`(
    select f.from_micros from farebox.lots f
    where f.ledger = ${ledger} and f.consumer_id = ${consumerId}
      and f.from_micros <= ${position} and f.to_micros > f.from_micros
    order by f.from_micros desc limit 1
  )`;
}

/**
 * The lots of a consumer that are not wholly spent, and of each what is not, in the order in which they will be spent.
 * With an order, PostgreSQL reads them by their position: the bound alone does not convince it where it expects few.
 */
export function unspentLots({ ledger, consumerId }: ConsumerRef) {
  const spent = sql.fragment`(
    select spent_micros from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
  )`;
  return sql.fragment`(
    select ctid as place, movement_id, top_up_id, from_micros, to_micros,
      to_micros - greatest(from_micros, ${spent}) as micros
    from farebox.lots
    where ledger = ${ledger} and consumer_id = ${consumerId} and to_micros > ${spent}
      and from_micros >= ${firstLotAt(sql.fragment`${ledger}`, sql.fragment`${consumerId}`, spent)}
    order by from_micros
  )`;
}
