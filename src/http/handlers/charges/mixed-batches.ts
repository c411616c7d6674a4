/**
 * A batch in which some members are about holds. All of its members, charges included, are entries of one batcher, so
 * that those of a consumer are decided in the order of the request.
 */
import { answerDecided, prepareCharge } from '../../../charging/charge.ts';
import { releaseEntry } from '../../../charging/hold-entries.ts';
import { settleInSlices, valueOf } from '../../../charging/map-in-slices.ts';
import type { BatchMember } from '../../../schemas/charge-batches.ts';
import type { Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import {
  capturedCharge,
  decide,
  placedHold,
  placementOf,
  prepareCapture,
  releasedHold,
  type Decided,
} from '../holds/holds.ts';
import { chargedMember, type AskedMember } from './batch-members.ts';

/** Posts the member's entry before it first awaits, and resolves with the member's result. */
type Posting = () => Promise<BatchMember>;

/** All are prepared before the first is posted, as in `chargeAll`. */
export async function doAll(
  api: Api,
  request: Request,
  members: readonly AskedMember[],
): Promise<PromiseSettledResult<BatchMember>[]> {
  const prepared = await settleInSlices(members, (member) => prepare(api, request, member));
  // Not in slices: entries that are posted in one turn of the event loop are decided in few flushes.
  const results = await Promise.allSettled(prepared.map(async (each) => valueOf(each)()));
  showLastStates(results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  return results;
}

/** A result has its hold as it is after its flush. A batch may have several, so the last result of a hold counts. */
function showLastStates(results: readonly BatchMember[]): void {
  const holds = results.flatMap((each) => ('hold' in each ? [each.hold] : []));
  const last = new Map(
    holds.map(({ id, status, captured, remaining }) => [id, { status, captured, remaining }]),
  );
  for (const hold of holds) Object.assign(hold, last.get(hold.id));
}

async function prepare(api: Api, request: Request, member: AskedMember): Promise<Posting> {
  switch (member.op) {
    case 'charge': {
      const prepared = await prepareCharge(api, member.request);
      if (prepared.kind !== 'ready') return async () => chargedMember(api, prepared);
      const { draft } = prepared;
      return async () => {
        const outcome = await api.entries.post({ ...draft, kind: 'charge' }, request);
        return chargedMember(api, await answerDecided(draft, outcome, request));
      };
    }
    case 'hold': {
      const entry = await placementOf(api, member.request);
      return async () => {
        const made = await decide(api, request, entry);
        return { ...statusOf(made), hold: placedHold(request, made) };
      };
    }
    case 'capture': {
      const entry = await prepareCapture(api, member.request, member.body);
      return async () => {
        const made = await decide(api, request, entry);
        return { ...statusOf(made), ...capturedCharge(api, request, made) };
      };
    }
    case 'release': {
      const entry = releaseEntry(member.request);
      return async () => ({
        status: 200,
        hold: releasedHold(request, await decide(api, request, entry)),
      });
    }
  }
}

function statusOf({ kind }: Decided) {
  return kind === 'replayed'
    ? ({ status: 201, replayed: true } as const)
    : ({ status: 201 } as const);
}
