/** Members of a batch: what each asks for, by its `op`, and the result of a charge. */
import type { ChargeResult } from '../../../charging/charge.ts';
import type { ChargeRequest } from '../../../charging/draft-charge.ts';
import type { HoldRequest, PlaceRequest } from '../../../charging/hold-entries.ts';
import { ApiError } from '../../../domain/errors.ts';
import { BATCH_OPS, type BatchMember, type BatchOp } from '../../../schemas/charge-batches.ts';
import type { CaptureBody } from '../../../schemas/holds.ts';
import { checkedKey } from '../../idempotency-key-header.ts';
import { invalidField } from '../../invalid-field.ts';
import type { Api } from '../../services.ts';
import { bodyValidator } from '../../validation.ts';
import { holdIdOf } from '../holds/holds.ts';
import { chargeReply } from './charges.ts';

export type AskedMember =
  | { readonly op: 'charge'; readonly request: ChargeRequest }
  | { readonly op: 'hold'; readonly request: PlaceRequest }
  | { readonly op: 'capture'; readonly request: HoldRequest; readonly body: CaptureBody }
  | { readonly op: 'release'; readonly request: HoldRequest };

const charge = bodyValidator(BATCH_OPS.charge);
const hold = bodyValidator(BATCH_OPS.hold);
const capture = bodyValidator(BATCH_OPS.capture);
const release = bodyValidator(BATCH_OPS.release);

type Parser = (developer: ChargeRequest['developer'], member: unknown) => AskedMember;

const PARSERS: Readonly<Record<BatchOp, Parser>> = {
  charge: (developer, member) => {
    const body = charge(member);
    return { op: 'charge', request: { developer, body, idempotencyKey: keyOf(body) } };
  },
  hold: (developer, member) => {
    const body = hold(member);
    return { op: 'hold', request: { developer, body, idempotencyKey: keyOf(body) } };
  },
  capture: (developer, member) => {
    const body = capture(member);
    const holdId = holdIdOf(body.holdId);
    return { op: 'capture', request: { developer, holdId, idempotencyKey: keyOf(body) }, body };
  },
  release: (developer, member) => {
    const body = release(member);
    const holdId = holdIdOf(body.holdId);
    return { op: 'release', request: { developer, holdId, idempotencyKey: keyOf(body) } };
  },
};

/** A malformed member fails on its own: its error is returned. */
export function parseMember(
  developer: ChargeRequest['developer'],
  member: unknown,
): AskedMember | ApiError {
  try {
    return PARSERS[opOf(member)](developer, member);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

function opOf(member: unknown): BatchOp {
  const op = typeof member === 'object' && member !== null && 'op' in member ? member.op : 'charge';
  if (typeof op === 'string' && Object.hasOwn(BATCH_OPS, op)) return op as BatchOp;
  throw invalidField('op', `op must be one of ${Object.keys(BATCH_OPS).join(', ')}.`);
}

function keyOf({ idempotencyKey }: { readonly idempotencyKey?: string }): string | undefined {
  return idempotencyKey === undefined ? undefined : checkedKey(idempotencyKey);
}

/** The result of a charge. Throws the ApiError of a refusal. */
export function chargedMember(api: Api, result: ChargeResult): BatchMember {
  const { isReplay, body } = chargeReply(api, result);
  return isReplay ? { status: 201, replayed: true, ...body } : { status: 201, ...body };
}
