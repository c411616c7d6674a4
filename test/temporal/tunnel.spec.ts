/** The tunnel of a worker's connection, with an echo in place of Temporal. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { openTunnel, type Tunnel } from '../../src/temporal/tunnel.ts';
import { choosePort } from '../support/ports.ts';

describe('the tunnel to Temporal', () => {
  let echo: Server;
  let tunnel: Tunnel;

  before(async () => {
    echo = createServer((socket) => socket.on('error', () => {}).pipe(socket));
    echo.listen(0, '127.0.0.1');
    await once(echo, 'listening');
    tunnel = await openTunnel(`127.0.0.1:${(echo.address() as AddressInfo).port}`);
  });
  after(async () => {
    await tunnel?.close();
    echo?.close();
  });

  it('cuts only connections on which nothing has arrived', async () => {
    const [heard, silent] = [enter(tunnel), enter(tunnel)];
    assert.equal(await answerTo(heard, 'one'), 'one');
    assert.equal(await answerTo(silent, 'one'), 'one');
    const cutSilent = tunnel.listen();
    const opened = enter(tunnel);
    assert.equal(await answerTo(heard, 'two'), 'two');
    const ended = once(silent, 'close');
    cutSilent();
    await ended;
    assert.equal(await answerTo(heard, 'three'), 'three');
    assert.equal(await answerTo(opened, 'four'), 'four');
  });

  it('passes the end of a connection on', async () => {
    const socket = enter(tunnel);
    assert.equal(await answerTo(socket, 'one'), 'one');
    // The echo ends when it is told of the end, and that is told here.
    socket.end();
    await once(socket, 'close');
  });

  it('ends a connection when Temporal cannot be reached, and serves the next', async () => {
    const port = await choosePort();
    const closed = await openTunnel(`127.0.0.1:${port}`);
    await once(enter(closed), 'close');
    const late = createServer((socket) => socket.end('late')).listen(port, '127.0.0.1');
    await once(late, 'listening');
    const [data] = (await once(enter(closed), 'data')) as [Buffer];
    assert.equal(data.toString(), 'late');
    await closed.close();
    late.close();
  });
});

function enter({ address }: Tunnel): Socket {
  const [host, port] = address.split(':');
  return connect(Number(port), host).on('error', () => {});
}

async function answerTo(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [data] = (await once(socket, 'data')) as [Buffer];
  return data.toString();
}
