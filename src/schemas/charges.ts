/** Wire shapes of charging (specification section 4.3) and of charge lists. */
import { Type, type Static } from 'typebox';
import { Dollars, PageMarks, PlainText, Timestamp, ToolName } from './shapes.ts';

/**
 * Flat, so that it has no depth; small, so that a charge stays small. A name that the pattern does not
 * match is an additional property, and refused as such.
 */
const METADATA_MEMBERS_MAX = 20;
export const Metadata = Type.Record(
  Type.String({ pattern: '^[^\\u0000\\p{Cs}]{1,40}$' }),
  Type.Union([PlainText(500), Type.Number(), Type.Boolean(), Type.Null()]),
  { maxProperties: METADATA_MEMBERS_MAX, additionalProperties: false },
);

/** `apiKey` is checked by hand: missing or not a string it is a bad key (401), not a malformed body. */
export const ChargeBody = Type.Object({
  apiKey: Type.Optional(Type.Unknown({ description: "The consumer's key" })),
  tool: ToolName,
  amount: Type.Optional(
    Dollars("What is charged; left out, the tool's price. At most 1,000,000, to six decimals"),
  ),
  metadata: Type.Optional(Metadata),
});
export type ChargeBody = Static<typeof ChargeBody>;

export const BATCH_CHARGES_MAX = 1_000;

/** Each member is checked by itself, so that one that is malformed does not fail its neighbours. */
export const ChargeBatchBody = Type.Object({
  charges: Type.Array(Type.Unknown(), { minItems: 1, maxItems: BATCH_CHARGES_MAX }),
});
export type ChargeBatchBody = Static<typeof ChargeBatchBody>;

/** A member: the single call's body, with its idempotency key in it. */
export const BatchedCharge = Type.Object({
  ...ChargeBody.properties,
  idempotencyKey: Type.Optional(Type.String()),
});

export const RefundBody = Type.Object({
  amount: Type.Optional(Dollars('At most what is left of the charge; left out, all of that')),
});
export type RefundBody = Static<typeof RefundBody>;

export const RefundAnswer = Type.Object({
  id: Type.String(),
  chargeId: Type.String(),
  amount: Dollars('What went back'),
  refunded: Dollars('Of the charge, by this refund and those before it'),
  createdAt: Timestamp,
});

const chargeFields = {
  id: Type.String(),
  tool: Type.String(),
  amount: Dollars('What was charged'),
  developerId: Type.String(),
  receipt: Type.String(),
  createdAt: Timestamp,
};

/** A charge as lists have it, which know what became of it. */
const listedFields = {
  ...chargeFields,
  refunded: Dollars('What of it went back, so far'),
  holdId: Type.Optional(Type.String({ description: 'The hold that it was captured of' })),
};

export const ChargeAnswer = Type.Object({
  ...chargeFields,
  consumerId: Type.String(),
  balance: Dollars("The consumer's balance after this charge"),
});

/** Specification section 2, Charge. */
export const UsageAnswer = Type.Object({
  charges: Type.Array(Type.Object(listedFields)),
  total: Dollars('Of all charges that match the filter, not of the page, less the refunds that do'),
  ...PageMarks,
});

const DeveloperCharge = Type.Object({
  ...listedFields,
  consumerId: Type.String(),
  metadata: Type.Union([Metadata, Type.Null()]),
});

export const ChargesAnswer = Type.Object({ charges: Type.Array(DeveloperCharge), ...PageMarks });
export const DeveloperChargeAnswer = DeveloperCharge;

/** In the order of the request: the single call's body and status each. */
export const ChargeBatchAnswer = Type.Object({
  results: Type.Array(
    Type.Object({ status: Type.Integer(), replayed: Type.Optional(Type.Literal(true)) }),
  ),
});
