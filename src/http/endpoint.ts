/**
 * A row of the table of routes: who may call, the schemas of the query and the body, and the handler, a function from a
 * checked request to a reply. Handlers know nothing of Koa. The row's schemas type the handler at compile time, are
 * checked by the tests at every call, and produce the API reference. read-endpoints.ts and write-endpoints.ts make the
 * middleware of a row.
 */
import type { Middleware } from 'koa';
import type { Static, TObject, TSchema } from 'typebox';
import type { Requester } from '../charging/batcher.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import type { Connection } from '../store/database.ts';
import type { Role } from './authenticate.ts';
import type { EventStream } from './event-stream.ts';
import type { OperationId } from './openapi/operations.ts';
import type { Reply } from './respond.ts';
import type { Api } from './services.ts';

export type { Reply };

export interface Request<Body = unknown, Query = unknown> extends Requester {
  /** The owner of the key. The route decides which kind of key it accepts. */
  readonly caller: KeyOwner;
  readonly body: Body;
  readonly query: Query;
  readonly params: Readonly<Record<string, string>>;
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
}

/** The schema of the body for each success status. */
export type Replies = Readonly<Record<number, TSchema>>;

export type ReplyOf<R extends Replies> = {
  [Status in keyof R & number]: Reply<Static<R[Status]>, Status>;
}[keyof R & number];

/** The events of a stream: their name, and the schema of their data. */
export interface EventContract {
  readonly name: string;
  readonly data: TSchema;
}

/** The parts of a row that the API reference and the tests read. */
export interface Contract {
  readonly operation: OperationId;
  /** `public`: no key is needed, and none is looked at. */
  readonly role: Role | 'public';
  /** The schemas of the `:names` in the path. */
  readonly params?: Readonly<Record<string, TSchema>>;
  readonly query?: TObject;
  readonly body?: TSchema;
  /** A request without a body is one with an empty object. */
  readonly isBodyOptional?: true;
  readonly replies: Replies | 'csv' | 'events';
  readonly event?: EventContract;
  /** Specific error codes, besides those that follow from the rest of the row. */
  readonly errors?: readonly ErrorCode[];
  /** The Idempotency-Key header makes a repeated request take effect once. */
  readonly isIdempotent?: true;
}

export interface Endpoint extends Contract {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  readonly path: string;
  /** A lost database connection may leave its outcome unknown. */
  readonly isWrite: boolean;
  readonly middleware: (api: Api) => Middleware;
}

/** What the handler of a `scan` may use: it reads in one transaction, and in one snapshot unless it reads in steps. */
export type ScanApi = Omit<Api, 'database'> & { readonly database: Connection };

/** Answers the request with a stream, which the handler's service then writes to. */
export type OpenStream = (onEnd: () => void) => EventStream;
