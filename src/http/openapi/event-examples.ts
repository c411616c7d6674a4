/**
 * An example of each type of event, and docs/events.md, which has them all. An example is built from the
 * examples of its members, except for those that its type decides.
 */
import type { Static } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../domain/events.ts';
import { EVENT_DATA } from '../../schemas/events.ts';
import { exampleOf } from './examples.ts';

type Data<Type extends EventType> = Static<(typeof EVENT_DATA)[Type]>;

/** Dollars as a plain number. */
type Plain<Member> = Member extends number ? number : Member;
type Decided<Type extends EventType> = {
  readonly [Name in keyof Data<Type>]?: Plain<Data<Type>[Name]>;
};

export interface ExampleEvent {
  readonly type: EventType;
  readonly timestamp: string;
  readonly data: object;
}

const BEFORE = '2026-11-20T14:02:51.204Z';
const AT = '2026-11-21T09:16:13.669Z';
const AFTER = '2026-11-22T09:16:13.669Z';

const credited = { createdAt: BEFORE, completedAt: BEFORE };

const DECIDED: { readonly [Type in EventType]?: Decided<Type> } = {
  'top_up.completed': { status: 'completed', createdAt: BEFORE, completedAt: AT },
  'top_up.expired': { status: 'expired', createdAt: BEFORE },
  'top_up.failed': {
    status: 'failed',
    method: 'direct',
    failure: { code: 'card_declined', message: 'Your card was declined.' },
  },
  'top_up.partially_refunded': { status: 'partially_refunded', ...credited },
  'top_up.refunded': { status: 'refunded', ...credited },
  'top_up.disputed': { status: 'disputed', ...credited },
  'top_up.charged_back': { status: 'charged_back', ...credited },
  'refund.requested': { status: 'requested' },
  'refund.made': { status: 'made', createdAt: BEFORE },
  'refund.failed': { status: 'failed', createdAt: BEFORE },
  'dispute.open': { status: 'open' },
  'dispute.lost': { status: 'lost', createdAt: BEFORE },
  'dispute.won': { status: 'won', createdAt: BEFORE },
  'warning.open': { status: 'open' },
  'warning.won': { status: 'won', createdAt: BEFORE },
  'hold.expired': {
    status: 'expired',
    captured: 0.4,
    remaining: 0,
    createdAt: BEFORE,
    expiresAt: AT,
  },
  'lease.expired': {
    status: 'expired',
    settled: 0.5,
    released: 1.5,
    remaining: 0,
    expiresIn: 0,
    createdAt: BEFORE,
    expiresAt: AT,
  },
  'key.rolled': { createdAt: BEFORE, expiresAt: AFTER, lastUsedAt: AT },
  'key.revoked': { createdAt: BEFORE, revokedAt: AT, lastUsedAt: BEFORE },
  'tool.price_changed': { price: 0.08, previousPrice: 0.05 },
};

export function exampleEvent(type: EventType): ExampleEvent {
  const example = exampleOf(EVENT_DATA[type]) as object;
  return { type, timestamp: AT, data: { ...example, ...DECIDED[type] } };
}

/** `docs/events.md`: each type with its meaning and its example. */
export function eventsPage(meanings: Readonly<Record<EventType, string>>): string {
  const sections = EVENT_TYPES.map((type) => {
    const example = JSON.stringify(exampleEvent(type), null, 2);
    return `## ${type}\n\n${meanings[type]}.\n\n\`\`\`json\n${example}\n\`\`\`\n`;
  });
  return `# Events

Every type of event that Farebox sends to [webhook endpoints](webhooks.md#receive-events), with an example. \`npm run generate\` writes
this page. Amounts are in dollars, times in UTC. Later versions may add types and fields: ignore those that you do not know.

${sections.join('\n')}`;
}
