/** The HTTP server under a small app: what happens to a connection whose response has begun. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import Koa from 'koa';
import type { ResponseRecorder } from '../../src/http/response-recorder.ts';
import { listen, type ListeningServer } from '../../src/http/server.ts';

describe('a connection whose response has begun', () => {
  let server: ListeningServer;
  let finish: () => void;

  before(async () => {
    const app = new Koa();
    app.use((ctx) => {
      ctx.respond = false;
      ctx.res.writeHead(200).write('begun');
      finish = () => ctx.res.end(' and finished');
    });
    const options = { host: '127.0.0.1', port: 0, sharesPort: false, connectionsPerAddress: 0 };
    const responses = { unparsable: () => {} } as unknown as ResponseRecorder;
    server = await listen(app, options, 'http://farebox.example', responses);
  });
  after(() => server.close());

  it('is closed behind the response if what follows is not HTTP', async () => {
    const socket: Socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n}');
    const [first] = (await once(socket, 'data')) as [Buffer];
    finish();
    const answer = String(first) + (await text(socket));
    socket.destroy();
    assert.match(answer, /^HTTP\/1\.1 200 .*begun.* and finished\r\n0\r\n\r\n$/s);
  });
});
