/** The rows of the table of routes for keys. Those that roll and revoke a key serve spend keys too. */
import {
  AccountKeysBody,
  AccountKeysReply,
  KeyBody,
  KeyReply,
  KeysReply,
  NewKeyReply,
  RevokeBody,
  RollBody,
} from '../../schemas/keys.ts';
import { Id } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import { getAccountKeys, patchAccountKeys } from '../handlers/accounts/account-keys.ts';
import { getKeys, postKey, postKeyRevocation, postKeyRoll } from '../handlers/accounts/keys.ts';
import { get } from '../read-endpoints.ts';
import { patch, post } from '../write-endpoints.ts';

const keyParams = { id: Id('key', 'The id of the key.') };

export const KEY_ENDPOINTS: readonly Endpoint[] = [
  get('/v1/account-keys', {
    operation: 'getAccountKeys',
    role: 'session',
    replies: { 200: AccountKeysReply },
    handle: getAccountKeys,
  }),
  patch('/v1/account-keys', {
    operation: 'updateAccountKeys',
    role: 'session',
    body: AccountKeysBody,
    replies: { 200: AccountKeysReply },
    errors: ['invalid_amount'],
    handle: patchAccountKeys,
  }),
  get('/v1/keys', {
    operation: 'listKeys',
    role: 'session',
    replies: { 200: KeysReply },
    handle: getKeys,
  }),
  post('/v1/keys', {
    operation: 'createKey',
    role: 'session',
    body: KeyBody,
    replies: { 201: NewKeyReply },
    isIdempotent: true,
    handle: postKey,
  }),
  post('/v1/keys/:id/roll', {
    operation: 'rollKey',
    role: 'payer',
    params: keyParams,
    body: RollBody,
    replies: { 201: NewKeyReply },
    errors: ['not_found', 'budget_closed'],
    isIdempotent: true,
    handle: postKeyRoll,
  }),
  post('/v1/keys/:id/revoke', {
    operation: 'revokeKey',
    role: 'payer',
    params: keyParams,
    body: RevokeBody,
    isBodyOptional: true,
    replies: { 200: KeyReply },
    errors: ['not_found'],
    handle: postKeyRevocation,
  }),
];
