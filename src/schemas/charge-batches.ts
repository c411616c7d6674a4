/** Schemas of batches: charges, holds, captures and releases in one request (specification section 4.3). */
import { Type, type Static } from 'typebox';
import { ChargeBody, ChargeReply } from './charges.ts';
import { ErrorReply } from './errors.ts';
import { CaptureBody, CaptureReply, HoldBody, HoldReply, PlacedHoldReply } from './holds.ts';
import { Closed, Text } from './shapes.ts';

export const BATCH_MEMBERS_MAX = 1_000;

const idempotencyKey = Type.Optional(Text('The idempotency key of this operation.', 'call-17'));
const holdId = Text('The id of the hold.', 'hld_01a1fd6455e57aa3b31e95f51a48130e');
const Op = <Name extends string>(name: Name, description: string) =>
  Type.Literal(name, { description, examples: [name] });

/** The body of a single charge plus its idempotency key. */
export const BatchedCharge = Closed({
  op: Type.Optional(Op('charge', 'Makes a charge. The default.')),
  ...ChargeBody.properties,
  idempotencyKey,
});

/** The body of a hold plus its idempotency key. */
export const BatchedHold = Closed({
  op: Op('hold', 'Places a hold.'),
  ...HoldBody.properties,
  idempotencyKey,
});

export const BatchedCapture = Closed({
  op: Op('capture', 'Captures a hold.'),
  holdId,
  ...CaptureBody.properties,
  idempotencyKey,
});

/** May have a key like its neighbors, but needs none: releasing a hold twice has the effect of releasing it once. */
export const BatchedRelease = Closed({
  op: Op('release', 'Releases a hold.'),
  holdId,
  idempotencyKey,
});

/** What a member may do, by its `op`. */
export const BATCH_OPS = {
  charge: BatchedCharge,
  hold: BatchedHold,
  capture: BatchedCapture,
  release: BatchedRelease,
} as const;
export type BatchOp = keyof typeof BATCH_OPS;

const MEMBERS = { minItems: 1, maxItems: BATCH_MEMBERS_MAX };

export const ChargeBatchBody = Closed({
  charges: Type.Array(
    Type.Union([BatchedCharge, BatchedHold, BatchedCapture, BatchedRelease]),
    MEMBERS,
  ),
});

/** Each member is checked separately, so that a malformed one does not fail the others. */
export const ChargeBatchEnvelope = Closed({ charges: Type.Array(Type.Unknown(), MEMBERS) });
export type ChargeBatchEnvelope = Static<typeof ChargeBatchEnvelope>;

const made = {
  status: Type.Literal(201),
  replayed: Type.Optional(
    Type.Literal(true, {
      description:
        'An earlier operation with the same idempotency key took effect, and this is its result.',
    }),
  ),
};

/**
 * A successful member: the reply of the single request, with its status. A hold is in a member of its own: it has a
 * status too.
 */
const ChargedMember = Closed({ ...made, ...ChargeReply.properties });
const PlacedMember = Closed({ ...made, hold: PlacedHoldReply });
const CapturedMember = Closed({ ...made, ...CaptureReply.properties });
const ReleasedMember = Closed({ status: Type.Literal(200), hold: HoldReply });
/** A failed member: the error of the single request, with its status. */
const RefusedMember = Closed({
  status: Type.Integer({ minimum: 400, maximum: 599, examples: [402] }),
  ...ErrorReply.properties,
});
export const BatchMember = Type.Union([
  ChargedMember,
  PlacedMember,
  CapturedMember,
  ReleasedMember,
  RefusedMember,
]);
export type BatchMember = Static<typeof BatchMember>;

export const ChargeBatchReply = Closed({
  results: Type.Array(BatchMember, {
    description: 'One result for each operation, in the order of the request.',
  }),
});
export type ChargeBatchReply = Static<typeof ChargeBatchReply>;
