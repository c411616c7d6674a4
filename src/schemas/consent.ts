/** Schemas of what an owner lets be taken from the saved card. */
import { Type, type Static } from 'typebox';
import { AUTO_TOP_UP_STATUSES } from '../domain/top-up.ts';
import { Closed, Dollars, DollarsAsked, Text, TimeOf, Word } from './shapes.ts';

export const ConsentBody = Closed({
  ceiling: DollarsAsked('The most that may be taken from the saved card in a UTC month.', 100),
  termsVersion: Type.String({
    description: '`terms.version` of the terms that the owner agreed to.',
    examples: ['2026-11-23'],
  }),
});
export type ConsentBody = Static<typeof ConsentBody>;

export const AutoTopUpBody = Closed({
  threshold: DollarsAsked('A charge that leaves less than this starts a top-up.', 5),
  amount: DollarsAsked('Dollars of each top-up, in whole cents, at least 0.50.', 25),
  ceiling: DollarsAsked('The most that automatic top-ups may take in a UTC month.', 100),
});
export type AutoTopUpBody = Static<typeof AutoTopUpBody>;

const AutoTopUp = Closed({
  status: Word(AUTO_TOP_UP_STATUSES, 'Whether automatic top-ups are on.'),
  reason: Type.Union([Type.String(), Type.Null()], {
    description:
      'Why one waits, or why they were turned off: a code such as `card_declined` or `payment_disputed`.',
    examples: [null],
  }),
  threshold: Dollars('A charge that leaves less than this starts a top-up.', 5),
  amount: Dollars('Dollars of each top-up.', 25),
  ceiling: Dollars('The most that automatic top-ups may take in a UTC month.', 100),
});

export const ConsentReply = Closed({
  ceiling: Type.Union([Dollars('Dollars per UTC month.', 100), Type.Null()], {
    description:
      'The most that direct and automatic top-ups may take in a UTC month. Null: no consent.',
    examples: [100],
  }),
  taken: Dollars(
    'Dollars credited from the saved card in this UTC month, and all that are pending.',
    25,
  ),
  agreedAt: Type.Union([TimeOf('When it was last changed.'), Type.Null()], {
    description: 'When the consent was last given, changed or withdrawn, or null.',
    examples: [null],
  }),
  terms: Closed(
    {
      version: Text('Send it back as `termsVersion`.', '2026-11-23'),
      text: Text('What the owner agrees to.', 'You allow this service to charge your saved card.'),
    },
    { description: 'The current terms.' },
  ),
  autoTopUp: Type.Union([AutoTopUp, Type.Null()], {
    description: 'What the owner set for automatic top-ups, or null.',
    examples: [null],
  }),
});
export type ConsentReply = Static<typeof ConsentReply>;
