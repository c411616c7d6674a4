/** Work that is late or was never started. */
import type { Plant } from '../planted-books.ts';

const DELIVERED = 'every notice is delivered within ten minutes';
const ENDS = 'every top-up ends on time';

const SENT = 'every event is sent within ten minutes of when it is due';

const SIGNED = 'the master secret of every active webhook endpoint is configured';

const endpoint = (master: number, status = `'active', null`) =>
  `insert into farebox.webhook_endpoints (id, account_id, url, secret_master, status, disabled_reason)
    values (':manual', ':account', 'https://example.com', ${master}, ${status})`;
const event = (dueIn: string, status = `'active', null`) =>
  `with endpoint as (${endpoint(1, status)} returning id)
    insert into farebox.webhook_deliveries (endpoint_id, event_id, next_attempt_at)
    select id, ':checkout', now() + interval '${dueIn}' from endpoint`;
const notice = (topic: string, age: string, next = 'now()') =>
  `insert into farebox.outbox (topic, subject_id, created_at, attempts, next_attempt_at)
    values ('${topic}', ':consumer', now() - interval '${age}', 7, ${next})`;
/** Its bank wants the cardholder to confirm it. */
const unconfirmed = (age: string) => [
  pending('direct', age),
  `update farebox.top_ups set authentication_asked_at = created_at where id = ':firstCharge'`,
];
/** Its page is open until then. */
const opened = (age: string, expires: string) => [
  pending('checkout', age),
  `update farebox.top_ups set session_id = 'cs_:checkout', session_url = 'https://example.com',
    session_expires_at = now() + interval '${expires}' where id = ':firstCharge'`,
];
const debited = `update farebox.top_ups set under_way_at = created_at where id = ':firstCharge'`;
const pending = (method: string, age: string) =>
  `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros, created_at, opened_at)
    select ':firstCharge', ledger, consumer_id, account_id, '${method}', 1000000, now() - interval '${age}', now()
    from farebox.top_ups where id = ':manual'`;

export const DELIVERY_PLANTS: readonly Plant[] = [
  {
    what: 'a notice that nobody delivers',
    statements: [notice('payment_reported', '11 minutes')],
    finds: ({ consumer }) => [[DELIVERED, `payment_reported ${consumer}`]],
  },
  {
    what: 'a notice of an automatic top-up that nobody takes up',
    statements: [notice('auto_top_up', '2 days', `now() - interval '11 minutes'`)],
    finds: ({ consumer }) => [[DELIVERED, `auto_top_up ${consumer}`]],
  },
  {
    what: 'an automatic top-up that is put off',
    statements: [notice('auto_top_up', '2 days', `now() + interval '1 hour'`)],
    finds: () => [],
  },
  {
    what: 'an event that nobody sends',
    statements: [event('-11 minutes')],
    finds: ({ checkout }) => [[SENT, `event ${checkout}`]],
  },
  { what: 'an event that waits after a failure', statements: [event('1 minute')], finds: () => [] },
  {
    what: 'an event for a disabled endpoint',
    statements: [event('-11 minutes', `'disabled', 'owner'`)],
    finds: () => [],
  },
  {
    what: 'an event of an endpoint that fails too slowly to be sent all of its events on time',
    statements: [
      event('-11 minutes'),
      `update farebox.webhook_endpoints set failing_since = now() where id = ':manual'`,
    ],
    finds: () => [],
  },
  {
    what: 'an endpoint whose master secret nobody has',
    statements: [endpoint(2)],
    finds: ({ manual }) => [[SIGNED, `endpoint ${manual}`]],
  },
  {
    what: 'a disabled endpoint whose master secret nobody has',
    statements: [endpoint(2, `'disabled', 'owner'`)],
    finds: () => [],
  },
  {
    what: 'a direct top-up that does not end',
    statements: [pending('direct', '121 minutes')],
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  {
    what: 'a checkout that cannot be opened',
    statements: [pending('checkout', '121 minutes')],
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  {
    what: 'a checkout that does not end after its time',
    statements: opened('27 hours', '-121 minutes'),
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  {
    what: 'a checkout that has been pending for 60 days',
    statements: [...opened('60 days', '-59 days'), debited],
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  {
    what: 'a bank debit in progress',
    statements: [...opened('14 days', '-13 days'), debited],
    finds: () => [],
  },
  {
    what: 'a direct top-up that was never confirmed at the bank',
    statements: unconfirmed('27 hours'),
    finds: ({ firstCharge }) => [[ENDS, `top-up ${firstCharge}`]],
  },
  {
    what: 'a direct top-up that waits for its cardholder',
    statements: unconfirmed('25 hours'),
    finds: () => [],
  },
  { what: 'a checkout that is open', statements: opened('1 day', '1 minute'), finds: () => [] },
];
