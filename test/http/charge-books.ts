/**
 * The expected result of charges, top-ups and refunds of charges, in a few lines of arithmetic. Everything happens
 * on one day and is in micro-dollars; consumers and developers go by their wire ids.
 */
import assert from 'node:assert/strict';

export interface ModelCharge {
  readonly id: string;
  readonly consumerId: string;
  readonly developerId: string;
  readonly tool: string;
  readonly micros: number;
  refunded: number;
  /** The credits that paid, in the order in which they were spent; refunds are taken off the end. */
  readonly paidBy: Money[];
}

interface Money {
  /** Null: the money came from a refund of a charge. */
  readonly topUpId: string | null;
  micros: number;
}

export class ChargeBooks {
  /** In the order of creation. */
  readonly charges: ModelCharge[] = [];
  readonly #money = new Map<string, Money[]>();

  topUp(consumerId: string, topUpId: string, micros: number): void {
    this.#moneyOf(consumerId).push({ topUpId, micros });
  }

  balance(consumerId: string): number {
    return sum(this.#moneyOf(consumerId));
  }

  /** First in, first out. Requires that the balance covers it. */
  charge(made: Omit<ModelCharge, 'refunded' | 'paidBy'>): void {
    const money = this.#moneyOf(made.consumerId);
    const paidBy: Money[] = [];
    for (let owed = made.micros; owed > 0;) {
      const [first] = money;
      assert.ok(first, 'spent more than there was');
      const micros = Math.min(owed, first.micros);
      paidBy.push({ topUpId: first.topUpId, micros });
      first.micros -= micros;
      if (first.micros === 0) money.shift();
      owed -= micros;
    }
    this.charges.push({ ...made, refunded: 0, paidBy });
  }

  /** Last in, first out; refunded money belongs to no top-up. */
  refund(charge: ModelCharge, micros: number): void {
    for (let owed = micros; owed > 0;) {
      const last = charge.paidBy.findLast((money) => money.micros > 0);
      assert.ok(last, 'gave back more than was charged');
      const back = Math.min(owed, last.micros);
      last.micros -= back;
      owed -= back;
    }
    charge.refunded += micros;
    this.#moneyOf(charge.consumerId).push({ topUpId: null, micros });
  }

  chargesOf(consumerId: string): ModelCharge[] {
    return this.charges.filter((charge) => charge.consumerId === consumerId);
  }

  usage(consumerId: string): number {
    return this.chargesOf(consumerId).reduce(
      (total, each) => total + each.micros - each.refunded,
      0,
    );
  }

  /** By tool: the net amount and the number of charges. */
  earnings(developerId: string): Map<string, { micros: number; charges: number }> {
    const byTool = new Map<string, { micros: number; charges: number }>();
    for (const { tool, micros, refunded } of this.#earned(developerId)) {
      const earned = byTool.get(tool) ?? { micros: 0, charges: 0 };
      byTool.set(tool, { micros: earned.micros + micros - refunded, charges: earned.charges + 1 });
    }
    return byTool;
  }

  /** By top-up: what the developer received and kept of it, and in how many charges. */
  topUps(developerId: string): Map<string, { charged: number; charges: number }> {
    const byTopUp = new Map<string, { charged: number; charges: number }>();
    for (const { paidBy } of this.#earned(developerId)) {
      for (const { topUpId, micros } of paidBy) {
        if (topUpId === null) continue;
        const paid = byTopUp.get(topUpId) ?? { charged: 0, charges: 0 };
        byTopUp.set(topUpId, { charged: paid.charged + micros, charges: paid.charges + 1 });
      }
    }
    return byTopUp;
  }

  #earned(developerId: string): ModelCharge[] {
    return this.charges.filter((charge) => charge.developerId === developerId);
  }

  #moneyOf(consumerId: string): Money[] {
    const money = this.#money.get(consumerId) ?? [];
    this.#money.set(consumerId, money);
    return money;
  }
}

function sum(money: readonly Money[]): number {
  return money.reduce((total, { micros }) => total + micros, 0);
}
