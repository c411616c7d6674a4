/** Wire shapes of holds. */
import { Type, type Static } from 'typebox';
import { HOLD_SECONDS_MAX, HOLD_STATUSES, OVER_MODES } from '../domain/hold.ts';
import { ChargeAnswer, ChargeBody, Metadata } from './charges.ts';
import { Dollars, PageMarks, Timestamp } from './shapes.ts';

const Seconds = (description: string) =>
  Type.Integer({ minimum: 1, maximum: HOLD_SECONDS_MAX, description });

/** A charge's body, and how long to reserve the amount. */
export const HoldBody = Type.Object({
  ...ChargeBody.properties,
  amount: Type.Optional(
    Dollars("What is reserved; left out, the tool's price. At most 1,000,000, to six decimals"),
  ),
  expiresIn: Type.Optional(Seconds('Seconds until the hold expires; left out, 600')),
});
export type HoldBody = Static<typeof HoldBody>;

export const CaptureBody = Type.Object({
  amount: Type.Optional(Dollars('What is charged; left out, everything that the hold has left')),
  final: Type.Optional(
    Type.Boolean({
      description: 'Whether the rest is released; left out, true. False leaves the hold open',
    }),
  ),
  over: Type.Optional(
    Type.Enum([...OVER_MODES], {
      description:
        'What an amount does that exceeds the hold. `reject`, the default, refuses it; `cap` charges what the ' +
        'hold has left; `overflow` takes the excess from the balance',
    }),
  ),
  metadata: Type.Optional(Metadata),
});
export type CaptureBody = Static<typeof CaptureBody>;

export const ExtendBody = Type.Object({
  expiresIn: Seconds('Seconds from now; never shortens a hold, nor extends it past 24 hours'),
});
export type ExtendBody = Static<typeof ExtendBody>;

const holdFields = {
  id: Type.String(),
  tool: Type.String(),
  amount: Dollars('What was reserved'),
  captured: Dollars('What its captures charged so far'),
  remaining: Dollars('What is still reserved; 0 once the hold is closed'),
  status: Type.Enum([...HOLD_STATUSES]),
  expiresAt: Timestamp,
  createdAt: Timestamp,
  consumerId: Type.String(),
  developerId: Type.String(),
};

export const HoldAnswer = Type.Object(holdFields);

export const PlacedHoldAnswer = Type.Object({
  ...holdFields,
  balance: Dollars("The consumer's balance after the hold was placed"),
});

export const CaptureAnswer = Type.Object({
  ...ChargeAnswer.properties,
  holdId: Type.String(),
  hold: HoldAnswer,
});

/** `metadata` is there for the developer alone. */
export const ListedHoldAnswer = Type.Object({
  ...holdFields,
  metadata: Type.Optional(Type.Union([Metadata, Type.Null()])),
});

export const HoldsAnswer = Type.Object({ holds: Type.Array(ListedHoldAnswer), ...PageMarks });
