/** Webhook endpoints of an account. Each change writes a notice, so that the endpoint's workflow sees it. */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { wireId } from '../../domain/ids.ts';
import {
  DISABLED_REASONS,
  WEBHOOK_ENDPOINT_STATUSES,
  WEBHOOK_ENDPOINTS_MAX,
  type DisabledReason,
} from '../../domain/webhook-endpoint.ts';
import {
  type Connection,
  countRow,
  type Database,
  idRow,
  nullable,
  row,
  sql,
  type Transaction,
} from '../database.ts';
import { lockAccount } from '../accounts/accounts.ts';
import { postNotice } from '../outbox.ts';
import { hashOrNull, type RepeatedRequest } from '../repeated-request.ts';
import { postEvent } from './events.ts';
import { FIRST_ID } from '../in-steps.ts';

const WebhookEndpoint = Type.Object({
  id: Type.String(),
  accountId: Type.String(),
  url: Type.String(),
  /** Null: all. */
  types: nullable(Type.Array(Type.String())),
  description: Type.String(),
  status: Type.Enum(WEBHOOK_ENDPOINT_STATUSES),
  disabledReason: nullable(Type.Enum(DISABLED_REASONS)),
  secret: Type.Integer(),
  secretMaster: Type.Integer(),
  /** The previous secret, while it also signs. */
  previousSecret: nullable(Type.Integer()),
  previousSecretMaster: nullable(Type.Integer()),
  previousSecretUntil: nullable(Type.String()),
  failingSince: nullable(Type.String()),
  createdAt: Type.String(),
});
export type WebhookEndpoint = Static<typeof WebhookEndpoint>;

const endpointRow = row(WebhookEndpoint);
const statusRow = row(Type.Pick(WebhookEndpoint, ['status']));
const accountRow = row(Type.Object({ accountId: Type.String() }));

const isOverlapping = sql.fragment`previous_secret_until > now()`;
const columns = sql.fragment`
  id, account_id as "accountId", url, types, description, status, disabled_reason as "disabledReason",
  secret, secret_master as "secretMaster",
  case when ${isOverlapping} then previous_secret end as "previousSecret",
  case when ${isOverlapping} then previous_secret_master end as "previousSecretMaster",
  case when ${isOverlapping} then previous_secret_until end as "previousSecretUntil",
  failing_since as "failingSince", created_at as "createdAt"
`;

/** An endpoint of one account. No other account sees it. */
export interface WhichEndpoint {
  readonly id: string;
  readonly accountId: string;
}

const named = ({ id, accountId }: WhichEndpoint) =>
  sql.fragment`id = ${id} and account_id = ${accountId}`;

export interface EndpointSettings {
  readonly url: string;
  readonly types: readonly string[] | null;
  readonly description: string;
}

/**
 * The idempotency key was used before. `known`: for the same request, with the endpoint as it is now. `key_reused`: for
 * another request.
 */
type Known =
  | { readonly kind: 'known'; readonly endpoint: WebhookEndpoint }
  | { readonly kind: 'key_reused' };

const KnownEndpoint = Type.Object({ id: Type.String(), isSame: Type.Boolean() });
const knownRow = row(KnownEndpoint);
const lastRollRow = row(
  Type.Object({ id: Type.String(), isSame: Type.Boolean(), isRepeated: Type.Boolean() }),
);

export async function makeWebhookEndpoint(
  database: Database,
  accountId: string,
  secretMaster: number,
  { url, types, description }: EndpointSettings,
  retry?: RepeatedRequest,
): Promise<
  | Known
  | { readonly kind: 'made'; readonly endpoint: WebhookEndpoint }
  | { readonly kind: 'too_many' }
> {
  return database.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const known = retry && (await findMade(tx, retry));
    if (known) return known;
    const count = await tx.oneFirst(sql.type(countRow)`
      select count(*) as count from farebox.webhook_endpoints where account_id = ${accountId}
    `);
    if (count >= WEBHOOK_ENDPOINTS_MAX) return { kind: 'too_many' };
    const endpoint = await tx.one(sql.type(endpointRow)`
      insert into farebox.webhook_endpoints (id, account_id, url, types, description, secret_master,
        idempotency_hash, request_hash)
      values (${randomUUIDv7()}, ${accountId}, ${url}, ${textsOf(types)}, ${description}, ${secretMaster},
        ${hashOrNull(retry?.keyHash)}, ${hashOrNull(retry?.requestHash)})
      returning ${columns}
    `);
    await tellWorkflow(tx, endpoint.id);
    return { kind: 'made', endpoint };
  });
}

async function findMade(tx: Transaction, retry: RepeatedRequest): Promise<Known | undefined> {
  const found = await tx.maybeOne(sql.type(knownRow)`
    select id, request_hash = ${hashOrNull(retry.requestHash)} as "isSame" from farebox.webhook_endpoints
    where idempotency_hash = ${hashOrNull(retry.keyHash)}
  `);
  return found ? knownOf(tx, found) : undefined;
}

async function knownOf(
  tx: Transaction,
  { id, isSame }: Static<typeof KnownEndpoint>,
): Promise<Known> {
  const endpoint = isSame ? await findWebhookEndpoint(tx, { id }) : null;
  return endpoint ? { kind: 'known', endpoint } : { kind: 'key_reused' };
}

/** Oldest first. */
export async function listWebhookEndpoints(
  connection: Connection,
  accountId: string,
  { limit, afterId }: { readonly limit: number; readonly afterId?: string | undefined },
): Promise<readonly WebhookEndpoint[]> {
  const after = afterId === undefined ? sql.fragment`true` : sql.fragment`id > ${afterId}::uuid`;
  return connection.any(sql.type(endpointRow)`
    select ${columns} from farebox.webhook_endpoints
    where account_id = ${accountId} and ${after}
    order by id limit ${limit}
  `);
}

/** With an account: only if it is the owner. */
export async function findWebhookEndpoint(
  connection: Connection,
  which: Pick<WhichEndpoint, 'id'> & Partial<WhichEndpoint>,
): Promise<WebhookEndpoint | null> {
  const { id, accountId } = which;
  const mine = accountId === undefined ? sql.fragment`id = ${id}` : named({ id, accountId });
  return connection.maybeOne(sql.type(endpointRow)`
    select ${columns} from farebox.webhook_endpoints where ${mine}
  `);
}

/** `isEnabled` true starts again after a failure; false drops waiting deliveries. */
export type EndpointChanges = {
  readonly [Setting in keyof EndpointSettings]: EndpointSettings[Setting] | undefined;
} & { readonly isEnabled: boolean | undefined };

/** Changes the defined members. */
export async function changeWebhookEndpoint(
  database: Database,
  which: WhichEndpoint,
  changes: EndpointChanges,
): Promise<WebhookEndpoint | null> {
  const { url, types, description, isEnabled } = changes;
  return database.transaction(async (tx) => {
    const changed = await tx.maybeOne(sql.type(endpointRow)`
      update farebox.webhook_endpoints set url = coalesce(${url ?? null}, url),
        types = ${types === undefined ? sql.fragment`types` : textsOf(types)},
        description = coalesce(${description ?? null}, description),
        -- No attempt at another address has failed yet.
        failing_since = case when url = coalesce(${url ?? null}, url) then failing_since end
      where ${named(which)} returning ${columns}
    `);
    if (!changed) return null;
    if (isEnabled === true) await enable(tx, which.id);
    if (isEnabled === false) await disableWebhookEndpoint(tx, which.id, 'owner');
    await tellWorkflow(tx, which.id);
    return findWebhookEndpoint(tx, which);
  });
}

async function enable(tx: Transaction, id: string): Promise<void> {
  const { rowCount } = await tx.query(sql.typeAlias('nothing')`
    update farebox.webhook_endpoints
    set status = 'active', disabled_reason = null, failing_since = null, mail_owed_at = null,
      mail_tried_at = case when mail_owed_at is null then mail_tried_at end
    where id = ${id} and status = 'disabled'
  `);
  // A transaction that did not yet see that the endpoint was disabled may have added an event or a redelivery.
  if (rowCount > 0) await dropWaiting(tx, id);
}

/**
 * A step takes a second at most, far from the timeout of a statement. A large account's endpoint may have a
 * million.
 */
const ROWS_PER_STEP = 20_000;

/** The caller has locked the endpoint, so no attempt is recorded meanwhile. */
async function dropWaiting(tx: Transaction, id: string): Promise<void> {
  let dropped: number;
  do {
    ({ rowCount: dropped } = await tx.query(sql.typeAlias('nothing')`
      update farebox.webhook_deliveries set status = 'failed', next_attempt_at = null
      where endpoint_id = ${id} and event_id = any (array(
        select event_id from farebox.webhook_deliveries
        where endpoint_id = ${id} and status = 'waiting' limit ${ROWS_PER_STEP}
      ))
    `));
  } while (dropped > 0);
}

/**
 * Drops the deliveries written by transactions that did not yet see that the endpoint was disabled or
 * deleted. Their notice starts the workflow, which calls this. Does nothing when it is active.
 */
export async function dropUnsendable(database: Database, id: string): Promise<void> {
  await database.transaction(async (tx) => {
    const status = await tx.maybeOneFirst(sql.type(statusRow)`
      select status from farebox.webhook_endpoints where id = ${id} for no key update
    `);
    if (status === 'disabled') await dropWaiting(tx, id);
    if (status === null) await deleteDeliveries(tx, id);
  });
}

const A_DAY_AGO = sql.fragment`now() - interval '1 day'`;

/**
 * Drops waiting deliveries. Unless the owner did it, tells the account's other endpoints, and notes that the owner must
 * get a mail (disabled-mails.ts): at most one in a day, and none in an endpoint's first day, so that the
 * holder of a key, who enables, deletes and makes endpoints, cannot send the owner any number of them. Does
 * nothing if the endpoint is not active, or if its `url` is not the given one.
 */
export async function disableWebhookEndpoint(
  tx: Transaction,
  id: string,
  reason: DisabledReason,
  url?: string,
): Promise<void> {
  const isMailOwed = sql.fragment`(${reason !== 'owner'} and e.created_at < ${A_DAY_AGO}
    and coalesce(e.mail_tried_at, '-infinity') < ${A_DAY_AGO})`;
  const accountId = await tx.maybeOneFirst(sql.type(accountRow)`
    update farebox.webhook_endpoints e
    set status = 'disabled', disabled_reason = ${reason},
      mail_owed_at = case when ${isMailOwed} then now() end,
      mail_tried_at = case when ${isMailOwed} then null else e.mail_tried_at end
    where e.id = ${id} and e.status = 'active' and e.url = coalesce(${url ?? null}, e.url)
    returning e.account_id as "accountId"
  `);
  if (accountId === null) return;
  await dropWaiting(tx, id);
  if (reason !== 'owner') {
    await postEvent(tx, accountId, 'webhook_endpoint.disabled', {
      id: wireId('webhookEndpoint', id),
      reason,
    });
  }
}

/**
 * The new secret signs at once; the one before it too, until the overlap is over. The repetition of the last
 * roll changes nothing: another one would end the secret that the receiver has.
 */
export async function rollWebhookSecret(
  database: Database,
  which: WhichEndpoint,
  secretMaster: number,
  overlapSeconds: number,
  retry?: RepeatedRequest,
): Promise<
  | Known
  | { readonly kind: 'rolled'; readonly endpoint: WebhookEndpoint }
  | { readonly kind: 'unknown' }
> {
  return database.transaction(async (tx) => {
    const last = await tx.maybeOne(sql.type(lastRollRow)`
      select id, roll_idempotency_hash is not distinct from ${hashOrNull(retry?.keyHash)} as "isRepeated",
        roll_request_hash is not distinct from ${hashOrNull(retry?.requestHash)} as "isSame"
      from farebox.webhook_endpoints where ${named(which)} for no key update
    `);
    if (!last) return { kind: 'unknown' };
    if (retry && last.isRepeated) return knownOf(tx, last);
    const endpoint = await tx.one(sql.type(endpointRow)`
      update farebox.webhook_endpoints set previous_secret = secret,
        previous_secret_master = secret_master,
        previous_secret_until = now() + make_interval(secs => ${overlapSeconds}),
        secret = secret + 1, secret_master = ${secretMaster},
        roll_idempotency_hash = ${hashOrNull(retry?.keyHash)},
        roll_request_hash = ${hashOrNull(retry?.requestHash)}
      where ${named(which)} returning ${columns}
    `);
    return { kind: 'rolled', endpoint };
  });
}

/** With its log. Its workflow ends. */
export async function deleteWebhookEndpoint(
  database: Database,
  which: WhichEndpoint,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const deleted = await tx.maybeOne(sql.type(idRow)`
      delete from farebox.webhook_endpoints where ${named(which)} returning id
    `);
    if (!deleted) return false;
    await deleteDeliveries(tx, which.id);
    await tellWorkflow(tx, which.id);
    return true;
  });
}

async function deleteDeliveries(tx: Transaction, id: string): Promise<void> {
  let last: string | null = FIRST_ID;
  while (last !== null) {
    last = await tx.maybeOneFirst(sql.type(idRow)`
      with gone as (
        delete from farebox.webhook_deliveries
        where endpoint_id = ${id} and event_id = any (array(
          select event_id from farebox.webhook_deliveries
          where endpoint_id = ${id} and event_id > ${last} order by event_id limit ${ROWS_PER_STEP}
        )) returning event_id
      )
      select event_id as id from gone order by event_id desc limit 1
    `);
  }
}

export async function tellWorkflow(connection: Connection, endpointId: string): Promise<void> {
  await postNotice(connection, 'webhook_endpoint', endpointId);
}

function textsOf(types: readonly string[] | null) {
  return types === null ? sql.fragment`null::text[]` : sql.fragment`${sql.array(types, 'text')}`;
}
