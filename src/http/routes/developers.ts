/** The rows of the table of routes for a developer: the top-ups that paid it, the refusals of its charges, and its settings. */
import { DeveloperChanges, DeveloperReply } from '../../schemas/developers.ts';
import { RefusalsQuery, RefusalsReply } from '../../schemas/refusals.ts';
import { PageQuery } from '../../schemas/shapes.ts';
import { DeveloperTopUpsReply } from '../../schemas/top-ups.ts';
import type { Endpoint } from '../endpoint.ts';
import { getDeveloper, patchDeveloper } from '../handlers/accounts/developer-settings.ts';
import { getRefusals } from '../handlers/refusals/refusals.ts';
import { getDeveloperTopUps } from '../handlers/top-ups/developer-top-ups.ts';
import { get, scan } from '../read-endpoints.ts';
import { patch } from '../write-endpoints.ts';

export const DEVELOPER_ENDPOINTS: readonly Endpoint[] = [
  scan('/v1/top-ups', {
    operation: 'listDeveloperTopUps',
    role: 'developer',
    query: PageQuery,
    replies: { 200: DeveloperTopUpsReply },
    handle: getDeveloperTopUps,
  }),
  get('/v1/refusals', {
    operation: 'listRefusals',
    role: 'developer',
    query: RefusalsQuery,
    replies: { 200: RefusalsReply },
    handle: getRefusals,
  }),
  get('/v1/developer', {
    operation: 'getDeveloper',
    role: 'developer',
    replies: { 200: DeveloperReply },
    handle: getDeveloper,
  }),
  patch('/v1/developer', {
    operation: 'updateDeveloper',
    role: 'developer',
    body: DeveloperChanges,
    replies: { 200: DeveloperReply },
    handle: patchDeveloper,
  }),
];
