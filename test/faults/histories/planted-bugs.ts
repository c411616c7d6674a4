/** Bugs that ledgers really have, each planted by changing one passage of a database function or of the code. */

export interface PlantedBug {
  readonly name: string;
  /** `sql`: `file` is a function of the database. `code`: it is a path from the root. */
  readonly in: 'sql' | 'code';
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Statements that come first: they take away constraints that would refuse what the bug does. */
  readonly before: readonly string[];
}

const sqlBug = (
  name: string,
  file: string,
  from: string,
  to: string,
  before: readonly string[] = [],
): PlantedBug => ({ name, in: 'sql', file, from, to, before });

const codeBug = (
  name: string,
  file: string,
  from: string,
  to: string,
  before: readonly string[] = [],
): PlantedBug => ({ name, in: 'code', file, from, to, before });

const without = (table: string, constraint: string) =>
  `alter table farebox.${table} drop constraint ${constraint}`;

const FITTING = 'post_fitting_groups_2.sql';
const CAREFUL = 'post_charges_2.sql';
const ENTRIES = 'post_entries_2.sql';
const REFUNDS = 'src/store/charges/refund-charge.ts';
const CREDITS = 'src/store/top-ups/credit-top-up.ts';
const TEST_TOP_UPS = 'src/store/top-ups/test-top-ups.ts';

export const PLANTED_BUGS: readonly PlantedBug[] = [
  // Charges that simply fit.
  sqlBug('a retried charge is made again', FITTING, 'where k.hash is not null', 'where false'),
  sqlBug(
    'a charge is answered with the balance before it',
    FITTING,
    'then v_available[r.grp] - r.through end',
    'then v_available[r.grp] end',
  ),
  sqlBug(
    'a charge is stored with the balance before it',
    FITTING,
    'v_available[r.grp] - r.through, r.idempotency',
    'v_available[r.grp], r.idempotency',
  ),
  sqlBug(
    'a charge in twenty is answered and not stored',
    FITTING,
    '  where v_spent[r.grp] is not null;\n\n  if found',
    '  where v_spent[r.grp] is not null and random() > 0.05;\n\n  if found',
  ),
  sqlBug(
    'a charge is stored and not debited',
    FITTING,
    'set spent_micros = c.spent_micros + g.total',
    'set spent_micros = c.spent_micros',
  ),
  sqlBug(
    'a retried charge is debited again',
    FITTING,
    'set spent_micros = spent_micros - p_group_total[v_group]\n    where ledger',
    'set spent_micros = spent_micros\n    where ledger',
  ),
  sqlBug(
    'a charge may be one dollar more than the balance',
    FITTING,
    'and g.total <= c.credited_micros - c.spent_micros - c.held_micros',
    'and g.total <= c.credited_micros - c.spent_micros - c.held_micros + 1000000',
    [
      without('consumers', 'consumers_not_overspent'),
      without('charges', 'charges_counters_plausible'),
    ],
  ),
  sqlBug(
    'the earnings of charges are not noted',
    FITTING,
    'where v_spent[r.grp] is not null group by 2, 3, 4;',
    'where false group by 2, 3, 4;',
  ),
  // Charges that are decided one by one.
  sqlBug(
    'a charge that may not fit does not lock its consumer',
    CAREFUL,
    'order by a.ledger, a.id for update of c;',
    'order by a.ledger, a.id;',
  ),
  sqlBug(
    'a retry of a charge that may not fit is made again',
    CAREFUL,
    'where a.idempotency is not null',
    'where false',
  ),
  sqlBug(
    'a refusal shows the balance less what was refused',
    CAREFUL,
    'available - total as balance,',
    'available - total - case when accepted then 0 else 10000 end as balance,',
  ),
  // Holds and captures.
  sqlBug(
    'a hold reserves nothing',
    ENTRIES,
    'c_add_held[c] := c_add_held[c] + v_excess;',
    'c_add_held[c] := c_add_held[c];',
  ),
  sqlBug(
    'a hold is refused although it fits',
    ENTRIES,
    'if v_excess > v_usable then',
    'if v_excess * 2 > v_usable then',
  ),
  sqlBug(
    'a retried hold or capture is made again',
    ENTRIES,
    ') p on a.hash is not null;',
    ') p on false;',
  ),
  sqlBug(
    'a capture does not release the rest of its hold',
    ENTRIES,
    'c_add_held[c] := c_add_held[c] - v_take - v_let_go;',
    'c_add_held[c] := c_add_held[c] - v_take;',
  ),
  sqlBug(
    'a capture is stored and not debited',
    ENTRIES,
    'c_add_spent[c] := c_add_spent[c] + v_ask;',
    'c_add_spent[c] := c_add_spent[c];',
  ),
  sqlBug(
    'a capture is answered with a balance that lacks what was released',
    ENTRIES,
    'c_available[c] := c_available[c] + v_let_go - v_excess;',
    'c_available[c] := c_available[c] - v_excess;',
  ),
  sqlBug(
    'a capture takes money from a hold and leaves it there',
    ENTRIES,
    'h_held[h] := h_held[h] - v_take - v_let_go;',
    'h_held[h] := h_held[h] - v_let_go;',
  ),
  sqlBug(
    'a released hold can be captured',
    ENTRIES,
    'when kind_release then state_released else state_captured end; end if;',
    'when kind_release then state_open else state_captured end; end if;',
    [without('holds', 'holds_hold_while_open')],
  ),
  sqlBug(
    'a capture and a release do not lock their hold',
    ENTRIES,
    'order by x.ledger + 0, x.id for update of x;',
    'order by x.ledger + 0, x.id;',
  ),
  sqlBug(
    'a hold and a capture do not lock their consumer',
    ENTRIES,
    'order by a.ledger, a.id for update of x;\n  select array_agg(x.spent_micros',
    'order by a.ledger, a.id;\n  select array_agg(x.spent_micros',
  ),
  // Refunds.
  codeBug('refunds do not take turns', REFUNDS, 'await lockConsumer(tx, charge);', ''),
  codeBug(
    'a retried refund is made again',
    REFUNDS,
    'const known = idempotencyKey &&',
    'const known = false &&',
    [without('charge_refunds', 'charge_refunds_idempotency_unique')],
  ),
  codeBug(
    'a refund is answered and lost',
    REFUNDS,
    "await addLot(tx, charge, { kind: 'charge_refund', amountMicros, reason, datedBy: refund.id });",
    '',
  ),
  codeBug(
    'a refund is answered before it is credited',
    REFUNDS,
    "await addLot(tx, charge, { kind: 'charge_refund', amountMicros, reason, datedBy: refund.id });",
    `setTimeout(() => void database.transaction(async (later) => {
      await lockConsumer(later, charge);
      await addLot(later, charge, { kind: 'charge_refund', amountMicros, reason });
    }).catch(() => {}), 300);`,
  ),
  codeBug(
    'a charge can be refunded for more than it was',
    REFUNDS,
    'if (amountMicros > refundableMicros || refundableMicros === 0)',
    'if (refundableMicros === 0)',
    [without('charge_refunds', 'charge_refunds_within_charge')],
  ),
  // Credits.
  codeBug(
    'a top-up is credited twice',
    CREDITS,
    'set credited_micros = c.credited_micros + b.amount_micros',
    'set credited_micros = c.credited_micros + 2 * b.amount_micros',
  ),
  codeBug(
    'a top-up is completed and not credited',
    CREDITS,
    'set credited_micros = c.credited_micros + b.amount_micros',
    'set credited_micros = c.credited_micros',
  ),
  codeBug(
    'a top-up is answered before it is credited',
    TEST_TOP_UPS,
    'if (!failure) await bookCredits(tx, [{ ledger, consumerId, topUpId: topUp.id, amountMicros }]);',
    `setTimeout(() => void database.transaction((later) =>
      bookCredits(later, [{ ledger, consumerId, topUpId: topUp.id, amountMicros }])).catch(() => {}), 300);`,
  ),
  codeBug(
    'a retried top-up is made again',
    TEST_TOP_UPS,
    'const known = await findByKey(tx, request);',
    'const known = null; request = { ...request, idempotencyKey: String(Math.random()) };',
  ),
  // Reads and answers.
  codeBug(
    'a balance is read from a memory that is half a second old',
    'src/http/handlers/balance/balance-and-usage.ts',
    'getCounters(api.database, caller),',
    `((globalThis.old ??= {})[caller.consumerId + Math.floor(Date.now() / 500)] ??=
      getCounters(api.database, caller)),`,
  ),
  codeBug(
    'charges of one batch get each other’s answers',
    'src/charging/batcher.ts',
    'const outcome = outcomes[index];\n      if (!outcome) continue;\n      this.#leave(waiting);',
    `const outcome = outcomes[outcomes.length - 1 - index];
      if (!outcome) continue;
      this.#leave(waiting);`,
  ),
  codeBug(
    'a lost connection is answered as nothing happened',
    'src/charging/batcher.ts',
    "return new ChargeFailure(\n        'outcome_unknown',",
    "return new ChargeFailure(\n        'not_made',",
  ),
  codeBug(
    'different idempotency keys are taken for the same',
    'src/charging/idempotency.ts',
    "hash('sha256', space + idempotencyKey)",
    "hash('sha256', space + idempotencyKey.slice(0, 11))",
  ),
];
