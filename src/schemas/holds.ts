/** Schemas of holds, their captures and lists. */
import { Type, type Static } from 'typebox';
import {
  HOLD_SECONDS_DEFAULT,
  HOLD_SECONDS_MAX,
  HOLD_STATUSES,
  OVER_MODES,
} from '../domain/hold.ts';
import { Units } from './tools.ts';
import { ChargeBody, ChargeReply, Metadata } from './charges.ts';
import {
  Closed,
  Dollars,
  DollarsAsked,
  Id,
  pageMarks,
  pageParameters,
  Text,
  TimeOf,
  Timestamp,
  Word,
} from './shapes.ts';

const Seconds = (description: string) =>
  Type.Integer({ minimum: 1, maximum: HOLD_SECONDS_MAX, description, examples: [120] });

/** The body of a charge, and how long to reserve the amount. */
export const HoldBody = Closed({
  ...ChargeBody.properties,
  amount: Type.Optional(
    DollarsAsked("Dollars to reserve: more than 0, at most 1,000,000. Default: the tool's price."),
  ),
  expiresIn: Type.Optional(
    Seconds(`Seconds until the hold expires. Default: ${HOLD_SECONDS_DEFAULT}.`),
  ),
});
export type HoldBody = Static<typeof HoldBody>;

export const CaptureBody = Closed({
  amount: Type.Optional(DollarsAsked('Dollars to charge. Default: all that is left in the hold.')),
  units: Type.Optional(Units),
  final: Type.Optional(
    Type.Boolean({
      description: 'Whether to release the rest. Default: true. False leaves the hold open.',
      examples: [true],
    }),
  ),
  over: Type.Optional(
    Word(
      OVER_MODES,
      'What to do with an amount that exceeds the hold: `reject` it (the default), `cap` it at what is ' +
        'left, or let it `overflow` into the balance.',
    ),
  ),
  metadata: Type.Optional(Metadata),
});
export type CaptureBody = Static<typeof CaptureBody>;

export const ExtendBody = Closed({
  expiresIn: Seconds('Seconds from now until the hold expires.'),
});
export type ExtendBody = Static<typeof ExtendBody>;

const holdFields = {
  id: Id('hold', 'The id of the hold.'),
  tool: Text('The name of the tool.', 'search'),
  amount: Dollars('Dollars reserved.', 1),
  captured: Dollars('Dollars charged so far by its captures.', 0),
  remaining: Dollars('Dollars still reserved. 0 once the hold is closed.', 1),
  status: Word(HOLD_STATUSES, 'The state of the hold.'),
  expiresAt: TimeOf('When it expires, in UTC.', '2026-11-21T09:26:13.669Z'),
  createdAt: Timestamp,
  consumerId: Id('consumer', 'The consumer whose balance is reserved.'),
  developerId: Id('developer', 'The developer who placed the hold.'),
};

export const HoldReply = Closed(holdFields);
export type HoldReply = Static<typeof HoldReply>;

export const PlacedHoldReply = Closed({
  ...holdFields,
  balance: Dollars("The consumer's balance after the hold was placed.", 9),
});
export type PlacedHoldReply = Static<typeof PlacedHoldReply>;

export const CaptureReply = Closed({
  ...ChargeReply.properties,
  holdId: Id('hold', 'The hold that was captured.'),
  hold: HoldReply,
});
export type CaptureReply = Static<typeof CaptureReply>;

export const ListedHold = Closed({
  ...holdFields,
  metadata: Type.Optional(
    Type.Union([Metadata, Type.Null()], {
      description: 'The metadata of the hold, or null. Only its developer sees it.',
      examples: [{ requestId: 'r-17' }],
    }),
  ),
});
export type ListedHold = Static<typeof ListedHold>;

export const HoldsQuery = Closed({
  ...pageParameters,
  status: Type.Optional(Word(HOLD_STATUSES, 'Only holds in this state.')),
});
export type HoldsQuery = Static<typeof HoldsQuery>;

export const HoldsReply = Closed({ holds: Type.Array(ListedHold), ...pageMarks });
export type HoldsReply = Static<typeof HoldsReply>;
