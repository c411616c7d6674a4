/**
 * The accounts that a random program changes: two consumers, who are also developers, with everything that the program
 * has made for them. The replies are kept, and `compare-replies.ts` compares them with the database.
 */
import { Type } from 'typebox';
import type { Units } from '../../../src/domain/rate-card.ts';
import { row, sql, type Database } from '../../../src/store/database.ts';
import type { TreeView } from '../../../src/store/budgets/budgets.ts';
import type { ChargeDraft } from '../../../src/store/charges/post-charges.ts';
import type { LeasedTool } from '../../../src/store/leases/lease.ts';
import type { ReportedReversal } from '../../../src/store/top-ups/reversals.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import type { Random } from '../../support/random.ts';

/** Draws only from `random`, so that what others do at the same time does not change what it asks for. */
export type Operation = (books: Books, owner: Owner, random: Random) => Promise<void>;

export type Developer = Pick<ChargeDraft, 'developerId' | 'developerNumber'>;

export interface MadeCharge {
  readonly id: string;
  readonly developer: Developer;
  readonly amountMicros: number;
}

export interface MadeHold {
  readonly id: string;
  readonly developer: Developer;
}

/** `isCapped`: a capture takes no more than the hold has left, so it may cost less. */
export interface ChargeByUnits {
  readonly id: string;
  readonly units: Units;
  readonly cardVersion: number;
  readonly isCapped: boolean;
}

export interface MadeLease extends MadeHold {
  readonly tools: readonly LeasedTool[];
  /** The sequence number of the next call. */
  next: number;
}

export interface MadeNode {
  readonly id: string;
  readonly number: number;
  readonly path: readonly number[];
}

export interface Key {
  /** Null: a key that its owner cannot roll or revoke. */
  readonly id: string | null;
  /** Null: a key of the account. */
  readonly spend: ChargeDraft['spend'];
  /** The only one that it pays, if the account has a daily limit for each developer. */
  readonly developer?: Developer;
}

/** A credited top-up, with the processor's view of it. */
export interface MadeTopUp {
  readonly id: string;
  /** With tax. */
  readonly grossMicros: number;
  /** Refunds that the processor does not have yet. */
  requested: readonly { readonly refundId: string; readonly grossMicros: number }[];
  reversals: readonly ReportedReversal[];
}

/** The sums of what the replies said, in micros. */
export type Sums = Record<'spent' | 'refunded' | 'adjusted' | 'toppedUp', number>;

export class Owner {
  readonly payer: Payer;
  readonly view: TreeView;
  readonly topUps: MadeTopUp[] = [];
  nodes: readonly MadeNode[] = [];
  keys: readonly Key[] = [{ id: null, spend: null }];
  readonly holds: MadeHold[] = [];
  readonly leases: MadeLease[] = [];
  readonly charges: MadeCharge[] = [];
  readonly sums: Sums = { spent: 0, refunded: 0, adjusted: 0, toppedUp: 0 };

  constructor(payer: Payer) {
    this.payer = payer;
    this.view = { ledger: payer.ledger, consumerId: payer.consumerId, root: null };
  }

  get accountId(): string {
    return this.payer.accountId;
  }

  get spendKeys(): readonly (Key & { readonly spend: NonNullable<Key['spend']> })[] {
    return this.keys.flatMap((key) => (key.spend ? [{ ...key, spend: key.spend }] : []));
  }

  /** A new charge, as its reply had it. */
  add(charge: MadeCharge): void {
    this.charges.push(charge);
    this.sums.spent += charge.amountMicros;
  }
}

const developerRow = row(
  Type.Object({ developerId: Type.String(), developerNumber: Type.Integer() }),
);

const OWNERS = 2;
const RECENT = 6;

/** Mostly one of the last ones, which are likelier to be open. */
export function pickRecent<Made>(made: readonly Made[], random: Random): Made {
  return random.pick(random.chance(0.8) ? made.slice(-RECENT) : made);
}

export class Books {
  readonly database: Database;
  readonly owners: readonly Owner[];
  readonly developers: readonly Developer[];
  /** How often each operation had each outcome: `charge posted`. */
  readonly counts = new Map<string, number>();
  /** The charge that was made with each idempotency hash, and the charges that repetitions named. */
  readonly chargeOfHash = new Map<string, string>();
  readonly repetitions: {
    readonly hash: string;
    readonly chargeId: string;
    readonly cardVersion: number;
  }[] = [];
  /** The version of the rate card of each charge and each hold that has one. */
  readonly cardOfCharge = new Map<string, number>();
  readonly cardOfHold = new Map<string, number>();
  /** Not yet compared with their cards. */
  readonly chargesByUnits: ChargeByUnits[] = [];
  /** Whether the operation that runs now is the only one. */
  isAlone = true;

  private constructor(
    database: Database,
    owners: readonly Owner[],
    developers: readonly Developer[],
  ) {
    this.database = database;
    this.owners = owners;
    this.developers = developers;
  }

  /** The first owner has a webhook endpoint, so that events are written for it. */
  static async open(database: Database): Promise<Books> {
    const owners: Owner[] = [];
    for (let n = 0; n < OWNERS; n += 1) owners.push(new Owner(await newPayer(database)));
    const developers = await database.any(sql.type(developerRow)`
      select developer_id as "developerId", developer_number as "developerNumber"
      from farebox.accounts order by developer_number
    `);
    const books = new Books(database, owners, developers);
    await books.change(sql.fragment`
      insert into farebox.webhook_endpoints (id, account_id, url, secret_master)
      values (uuidv7(), ${owners[0]?.accountId ?? null}, 'https://example.com', 1)
    `);
    return books;
  }

  ownerOf(consumerId: string): Owner {
    const owner = this.owners.find(({ payer }) => payer.consumerId === consumerId);
    if (!owner) throw new Error(`no owner of ${consumerId}`);
    return owner;
  }

  /** A new charge of a draft by units. */
  addByUnits(charge: ChargeByUnits): void {
    this.cardOfCharge.set(charge.id, charge.cardVersion);
    this.chargesByUnits.push(charge);
  }

  count(outcome: string): void {
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1);
  }

  /** What no function of the store does, such as to make a hold overdue. */
  async change(statement: ReturnType<typeof sql.fragment>): Promise<void> {
    await this.database.query(sql.typeAlias('nothing')`${statement}`);
  }
}
