/** An Express API with a paid route. Settings: FAREBOX_URL, FAREBOX_SECRET_KEY, PORT. */
import type { AddressInfo } from 'node:net';
import { Farebox } from '@farebox/client';
import { paidRoute } from '@farebox/client/express';
import express from 'express';

const farebox = new Farebox();
const app = express();

/** Free: a caller learns here what the others cost. */
app.get('/prices', (_request, response) => {
  response.json({ '/dice': '$0.01' });
});

/** A request with invalid arguments gets 400, and so is not paid for. */
app.get('/dice', paidRoute(farebox, { tool: 'dice', price: '0.01' }), (request, response) => {
  const sides = Number(request.query['sides'] ?? 6);
  if (!Number.isInteger(sides) || sides < 2) {
    response.status(400).json({ error: 'sides must be an integer of at least 2' });
    return;
  }
  response.json({ rolled: 1 + Math.floor(Math.random() * sides) });
});

const server = app.listen(Number(process.env['PORT'] ?? 8091), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`Express API ready: http://127.0.0.1:${port}\n`);
});
