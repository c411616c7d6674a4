/** The rows of the table of routes for the signed-in account: its session and its audit log. */
import { AuditLogReply } from '../../schemas/audit-log.ts';
import { SessionReply } from '../../schemas/keys.ts';
import { PageQuery } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { getSession } from '../handlers/accounts/keys.ts';
import { getAuditLog } from '../handlers/audit/audit-log.ts';
import { get } from '../read-endpoints.ts';

export const ACCOUNT_ENDPOINTS: readonly Endpoint[] = [
  get('/v1/session', {
    operation: 'getSession',
    role: 'session',
    replies: { 200: SessionReply },
    handle: getSession,
  }),
  get('/v1/audit-log', {
    operation: 'listAuditEntries',
    role: 'session',
    query: PageQuery,
    replies: { 200: AuditLogReply },
    handle: getAuditLog,
  }),
];
