/** Schemas of charges, their lists and refunds (specification sections 2 and 4.3). */
import { Type, type Static } from 'typebox';
import { CREDIT_SOURCES } from '../domain/credit.ts';
import {
  Closed,
  Dollars,
  DollarsAsked,
  Id,
  KeyAsked,
  MUST_BE,
  pageMarks,
  pageParameters,
  PlainText,
  Text,
  TimeOf,
  timeRange,
  Timestamp,
  ToolName,
  Word,
} from './shapes.ts';
import { CardVersion, Units } from './tools.ts';

/**
 * Flat, to rule out deep nesting, and limited, to keep charges small. A name that does not match the pattern is an
 * additional property and is refused as such.
 */
const METADATA_MEMBERS_MAX = 20;
export const Metadata = Type.Record(
  Type.String({ pattern: '^[^\\u0000\\p{Cs}]{1,40}$' }),
  Type.Union([PlainText(500), Type.Number(), Type.Boolean(), Type.Null()]),
  {
    maxProperties: METADATA_MEMBERS_MAX,
    additionalProperties: false,
    [MUST_BE]: 'an object whose names have 1 to 40 characters, without NUL or unpaired surrogates',
    description: `Up to ${METADATA_MEMBERS_MAX} fields of your own, with names of up to 40 characters. Farebox stores them with the charge, with numbers in double precision: send longer ones as strings.`,
    examples: [{ requestId: 'r-17' }],
  },
);

const RECEIPT = 'hmac_sha256.1.eyJpZCI6ImNoZ18wMWEx.S_fwtwsOLfxpQ8Dt';

/** A missing `apiKey` is an invalid key (401), not a malformed body. */
export const ChargeBody = Type.Object({
  apiKey: Type.Optional(
    KeyAsked("The consumer's key. Without a valid key, the charge is refused."),
  ),
  tool: ToolName,
  amount: Type.Optional(
    DollarsAsked("Dollars to charge: more than 0, at most 1,000,000. Default: the tool's price."),
  ),
  units: Type.Optional(Units),
  metadata: Type.Optional(Metadata),
});
export type ChargeBody = Static<typeof ChargeBody>;

export const RefundBody = Closed({
  amount: Type.Optional(
    DollarsAsked('Dollars to refund. Default: all of the charge that has not been refunded.'),
  ),
});
export type RefundBody = Static<typeof RefundBody>;

export const RefundReply = Closed({
  id: Id('chargeRefund', 'The id of the refund.'),
  chargeId: Id('charge', 'The charge that was refunded.'),
  amount: Dollars('Dollars refunded by this refund.'),
  refunded: Dollars('Dollars refunded so far by all refunds of the charge.'),
  createdAt: Timestamp,
});
export type RefundReply = Static<typeof RefundReply>;

const chargeFields = {
  id: Id('charge', 'The id of the charge.'),
  tool: Text('The name of the tool.', 'search'),
  amount: Dollars('Dollars charged.'),
  developerId: Id('developer', 'The developer who made the charge.'),
  receipt: Text('The signed receipt. Verify it with `POST /v1/receipts/verify`.', RECEIPT),
  createdAt: Timestamp,
  cardVersion: Type.Optional(CardVersion),
};
const consumerId = Id('consumer', 'The consumer who was charged.');

export const ChargeReply = Closed({
  ...chargeFields,
  consumerId,
  balance: Dollars("The consumer's balance after this charge.", 9.95),
});
export type ChargeReply = Static<typeof ChargeReply>;

const listedFields = {
  ...chargeFields,
  refunded: Dollars('Dollars of the charge refunded so far.', 0),
  holdId: Type.Optional(Id('hold', 'The hold from which the charge was captured, if any.')),
  leaseId: Type.Optional(Id('lease', 'The lease in which the call was settled, if any.')),
};

/** A charge in a consumer's list (specification section 2, Charge). */
export const ListedCharge = Closed(listedFields);
export type ListedCharge = Static<typeof ListedCharge>;

/** A charge as its consumer sees it. */
export const ConsumerChargeReply = Closed({
  ...listedFields,
  paidBy: Type.Array(
    Closed({
      source: Word(
        CREDIT_SOURCES,
        'What credited the balance: a top-up, an adjustment by an operator, or the refund of an earlier charge.',
      ),
      topUpId: Type.Optional(Id('topUp', 'The top-up, if it was one.')),
      creditedAt: TimeOf('When it was credited.'),
      amount: Dollars('Dollars of this credit that the charge spent.'),
    }),
    {
      description: 'The credits that paid for the charge, oldest first. They add up to its amount.',
    },
  ),
});
export type ConsumerChargeReply = Static<typeof ConsumerChargeReply>;

/** A charge as its developer sees it. */
export const DeveloperChargeReply = Closed({
  ...listedFields,
  consumerId,
  metadata: Type.Union([Metadata, Type.Null()], {
    description: 'The metadata of the charge, or null.',
    examples: [{ requestId: 'r-17' }],
  }),
});
export type DeveloperChargeReply = Static<typeof DeveloperChargeReply>;

const chargeFilter = {
  ...timeRange,
  tool: Type.Optional(Text('Only charges of this tool.', 'search')),
};
const developerFilter = {
  ...chargeFilter,
  consumerId: Type.Optional(Id('consumer', 'Only charges of this consumer.')),
};

export const UsageQuery = Closed({ ...pageParameters, ...chargeFilter });
export type UsageQuery = Static<typeof UsageQuery>;
export const UsageFileQuery = Closed(chargeFilter);
export type UsageFileQuery = Static<typeof UsageFileQuery>;

export const ChargesQuery = Closed({ ...pageParameters, ...developerFilter });
export type ChargesQuery = Static<typeof ChargesQuery>;
export const ChargesFileQuery = Closed(developerFilter);
export type ChargesFileQuery = Static<typeof ChargesFileQuery>;

export const ChargesReply = Closed({ charges: Type.Array(DeveloperChargeReply), ...pageMarks });
export type ChargesReply = Static<typeof ChargesReply>;
