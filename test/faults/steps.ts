/**
 * The steps of a top-up at which a test can stop it: a statement on its way into a table, a commit, a
 * request at the processor. The service's own code reaches each one, waits there, and continues when told to.
 */
import { Client } from 'pg';
import { control } from '../support/payments.ts';
import { type Simulator } from '../support/simulators.ts';
import { until } from '../support/stack.ts';

export interface Place {
  readonly databaseUrl: string;
  readonly simulator: Pick<Simulator, 'url' | 'token'>;
}

export interface HeldStep {
  /** Resolves when something waits there. */
  reached(): Promise<void>;
  /** Releases it, and all that come after it. */
  open(): Promise<void>;
}

export interface Step {
  readonly name: string;
  hold(place: Place): Promise<HeldStep>;
}

/** Triggers that wait for a lock that only a test holds: named by a number, one for each gate. */
const GATES = {
  'the request is written down': 'before insert on farebox.top_ups',
  'the workflow takes it up': 'before update of opened_at on farebox.top_ups',
  'the customer is noted': 'before update of processor_customer_id on farebox.accounts',
  'the session is noted': 'before update of session_id on farebox.top_ups',
  'the payment is noted': 'before update of payment_intent_id on farebox.top_ups',
  'the report is kept': 'before insert on farebox.processor_events',
  'the report is handed over': "before delete on farebox.outbox if (old.topic like '%_reported')",
  'the credit is booked': 'before insert on farebox.movements',
  'the status is written': 'before update of status on farebox.top_ups',
  'the credit is committed': 'after insert on farebox.movements',
  'the reversal is written down': 'before insert on farebox.reversals',
  'the reversal is noted': 'before update of status on farebox.reversals',
  'the lots are cut': 'before update of to_micros on farebox.lots',
} as const;

const GATE_CLASS = 4_711;

export async function installGates(databaseUrl: string): Promise<void> {
  const sql = await connected(databaseUrl);
  await sql.query(`
    create schema gates;
    create function gates.pass() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(${GATE_CLASS}, tg_argv[0]::int);
      return coalesce(new, old);
    end $$
  `);
  for (const [index, when] of Object.values(GATES).entries()) {
    const atCommit = when.startsWith('after');
    const [event, condition] = when.split(' if ');
    await sql.query(`
      create ${atCommit ? 'constraint ' : ''}trigger zz_gate_${index} ${event}
      ${atCommit ? 'deferrable initially deferred ' : ''}for each row ${condition ? `when ${condition} ` : ''}execute function gates.pass(${index})
    `);
  }
  await sql.end();
}

export function gate(name: keyof typeof GATES): Step {
  const number = Object.keys(GATES).indexOf(name);
  return {
    name,
    async hold({ databaseUrl }) {
      const holder = await connected(databaseUrl);
      await holder.query(`select pg_advisory_lock(${GATE_CLASS}, ${number})`);
      return {
        reached: async () => {
          await until(async () => {
            const { rows } = await holder.query<{ waiting: boolean }>(`
              select count(*) > 0 as waiting from pg_locks
              where locktype = 'advisory' and classid = ${GATE_CLASS} and objid = ${number} and not granted
            `);
            return rows[0]?.waiting;
          });
        },
        // Postgres may have been killed, which opened it.
        open: () => holder.end().catch(() => {}),
      };
    },
  };
}

/** A request at the processor: `before` it does anything, or after all its work, `unanswered`. */
export function request(at: 'before' | 'unanswered', method: string, path: string): Step {
  return {
    name: `${method} ${path} ${at === 'before' ? 'arrives' : 'is done and not answered'}`,
    async hold({ simulator }) {
      const fault = at === 'before' ? { kind: 'delay', ms: DELAY_MS } : { kind: 'do_then_drop' };
      await control(simulator, 'faults', { method, path, ...fault });
      return {
        reached: async () => {
          await until(async () => {
            const { faults } = (await control(simulator, 'faults')) as { faults: unknown[] };
            return faults.length === 0;
          });
        },
        open: () => Promise.resolve(),
      };
    },
  };
}

/** Long enough to be killed meanwhile. */
const DELAY_MS = 2_000;

async function connected(databaseUrl: string): Promise<Client> {
  const client = new Client({ connectionString: databaseUrl });
  client.on('error', () => {});
  await client.connect();
  return client;
}
