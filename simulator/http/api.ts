/**
 * One request of the API from its text to its answer: key, route, parameters, then the handler in one
 * transaction with the answer that its idempotency key keeps.
 */
import type { Answer, Reply } from './answers.ts';
import { expand } from './expand.ts';
import { ApiError, outage, unauthorized, unknownRoute } from './errors.ts';
import type { FaultAround } from '../controls/faults.ts';
import { parseForm } from './form.ts';
import { fingerprintOf, type IdempotencyKeys } from './idempotency.ts';
import { newId } from '../ids.ts';
import { Params } from './params.ts';
import { findRoute } from './routes.ts';
import { run, type Simulation } from '../simulation.ts';

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  /** The query of a GET, the body of a POST. */
  readonly form: string;
  readonly authorization: string | undefined;
  readonly idempotencyKey: string | undefined;
}

export async function answerApi(
  simulation: Simulation,
  keys: IdempotencyKeys,
  request: ApiRequest,
  fault: FaultAround,
): Promise<Answer> {
  const id = newId('req');
  const key = request.method === 'POST' ? request.idempotencyKey : undefined;
  const headers = { 'Request-Id': id, ...(key !== undefined && { 'Idempotency-Key': key }) };
  try {
    if (request.authorization !== `Bearer ${simulation.secretKey}`) {
      throw unauthorized(request.authorization);
    }
    if (key === undefined) {
      await fault.before();
      return { ...text(execute(simulation, request, { id, key }, fault, () => {})), headers };
    }
    const fingerprint = fingerprintOf(request.path, request.form);
    const kept = keys.claim(key, fingerprint);
    if (kept) {
      const replayed = { 'Idempotent-Replayed': 'true', 'Original-Request': kept.requestId };
      return { status: kept.status, body: kept.body, headers: { ...headers, ...replayed } };
    }
    try {
      await fault.before();
      const keep = (reply: Reply) => keys.keep(key, { ...text(reply), fingerprint, requestId: id });
      return { ...text(execute(simulation, request, { id, key }, fault, keep)), headers };
    } finally {
      keys.release(key);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { ...text({ status: error.status, body: error.body }), headers };
  }
}

/** `keep` is called in the transaction, with what the idempotency key is to answer from now on. */
function execute(
  simulation: Simulation,
  { method, path, form }: ApiRequest,
  { id, key }: { id: string; key: string | undefined },
  fault: FaultAround,
  keep: (reply: Reply) => void,
): Reply {
  const route = findRoute(method, path);
  if (!route) throw unknownRoute(method, path);
  try {
    return run(simulation, { id, idempotency_key: key ?? null }, (context) => {
      const params = new Params(parseForm(form));
      const paths = params.strings('expand') ?? [];
      const reply = route.handler(context, params, route.id);
      params.finish();
      if (reply.status === 200) expand(context.store, reply.body, paths);
      const told = fault.answerInstead === undefined ? reply : outage(fault.answerInstead);
      keep(told);
      return told;
    });
  } catch (error) {
    if (!(error instanceof ApiError) || error.beforeStart) throw error;
    const refusal = { status: error.status, body: error.body };
    simulation.store.transaction(() => keep(refusal));
    return refusal;
  }
}

function text({ status, body }: Reply): { status: number; body: string } {
  return { status, body: JSON.stringify(body, undefined, 2) };
}
