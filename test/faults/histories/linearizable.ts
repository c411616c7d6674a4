/**
 * Decides whether a history is linearizable: whether its operations can be put into an order, each at one
 * moment between its call and its answer, in which a model gives exactly the answers that were given.
 *
 * The algorithm is that of Wing and Gong with Lowe's memory, as in porcupine: depth first over the operations
 * that could be next, which are those that were called before the first answer of any other operation that is
 * left. Which money moved follows from the answers, so the state follows from the set of operations that
 * happened. A set that was seen before leads nowhere, and is not tried again.
 */
import type { Operation } from './operation.ts';

export interface Verdict {
  readonly isLinearizable: boolean;
  /** The most operations that fit into any order. */
  readonly ordered: number;
  /** Where such an order ended: what could have been next, and did not fit. */
  readonly stuckAt: readonly Operation[];
}

interface Event {
  readonly operation: Operation;
  readonly index: number;
  /** Undefined for an answer. */
  answer: Event | undefined;
  before: Event | undefined;
  after: Event | undefined;
}

interface Choice<State> {
  readonly call: Event;
  readonly state: State;
  readonly done: bigint;
}

/** `apply` returns the state after the operation, or undefined when the operation does not fit. */
export function checkHistory<State>(
  operations: readonly Operation[],
  start: State,
  apply: (state: State, effect: Operation['effect']) => State | undefined,
): Verdict {
  const head = eventsInOrder(operations);
  const seen = new Set<string>();
  const choices: Choice<State>[] = [];
  let state = start;
  let done = 0n;
  let ordered = 0;
  let stuckAt: readonly Operation[] = [];
  let event = head.after;
  while (head.after) {
    if (event?.answer) {
      const next = apply(state, event.operation.effect);
      const then = done | (1n << BigInt(event.index));
      if (next !== undefined && isNew(seen, then)) {
        choices.push({ call: event, state, done });
        [state, done] = [next, then];
        takeOut(event);
        event = head.after;
      } else event = event.after;
      continue;
    }
    // An answer whose call is still there: nothing that could be before it fits.
    if (choices.length >= ordered) {
      ordered = choices.length;
      stuckAt = candidates(head);
    }
    const last = choices.pop();
    if (!last) return { isLinearizable: false, ordered, stuckAt };
    ({ state, done } = last);
    putBack(last.call);
    event = last.call.after;
  }
  return { isLinearizable: true, ordered: operations.length, stuckAt: [] };
}

function isNew(seen: Set<string>, done: bigint): boolean {
  const size = seen.size;
  return seen.add(done.toString(36)).size > size;
}

/** A list of all calls and answers by time, behind an empty head. Of equal times, calls are first: they overlap. */
function eventsInOrder(operations: readonly Operation[]): Event {
  const timed = operations.flatMap((operation, index) => {
    const end: Event = { operation, index, answer: undefined, before: undefined, after: undefined };
    const call: Event = { ...end, answer: end };
    return [
      { atMs: operation.calledMs, event: call },
      { atMs: operation.answeredMs, event: end },
    ];
  });
  timed.sort((a, b) => a.atMs - b.atMs || (a.event.answer ? 0 : 1) - (b.event.answer ? 0 : 1));
  const head = { after: undefined } as unknown as Event;
  let last = head;
  for (const { event } of timed) {
    last.after = event;
    event.before = last;
    last = event;
  }
  return head;
}

function takeOut(call: Event): void {
  for (const event of [call, call.answer]) {
    if (event?.before) event.before.after = event.after;
    if (event?.after) event.after.before = event.before;
  }
}

function putBack(call: Event): void {
  for (const event of [call.answer, call]) {
    if (event?.before) event.before.after = event;
    if (event?.after) event.after.before = event;
  }
}

function candidates(head: Event): Operation[] {
  const found: Operation[] = [];
  for (let at = head.after; at?.answer; at = at.after) found.push(at.operation);
  return found;
}
