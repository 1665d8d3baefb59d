"""Stands between the brokers and everybody who talks to them, and understands nothing: it passes bytes on, late or not at
all, or ends a connection."""

import random
import select
import socket
import threading
import time


class Relay:
    """One port that passes everything on to another."""

    CHUNK = 65_536

    def __init__(self, target):
        """`target()` is asked at each connection: the relay is there before the broker is."""
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.connections = set()
        self.lock = threading.Lock()
        self.delay = 0.0
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        port = None if self.is_cut else self.target()
        try:
            broker = socket.create_connection(("127.0.0.1", port), timeout=10) if port else None
        except OSError:
            broker = None
        if broker is None:
            client.close()
            return
        for end in (client, broker):
            end.settimeout(None)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(client, broker)
        with self.lock:
            self.connections.add(connection)
        for source, sink in ((client, broker), (broker, client)):
            threading.Thread(target=self._pump, args=(connection, source, sink), daemon=True).start()

    def _pump(self, connection, source, sink):
        try:
            while True:
                select.select([source], [], [])
                connection.flows.wait()
                data = source.recv(self.CHUNK)
                if not data:
                    break
                if self.delay:
                    time.sleep(self.delay)
                sink.sendall(data)
        except (OSError, ValueError):
            pass
        with self.lock:
            self.connections.discard(connection)
        connection.end()

    def _some(self, dice, share):
        with self.lock:
            return [connection for connection in self.connections if dice.random() < share]

    def end_some(self, dice: random.Random, share):
        """Ends a share of the connections, as a firewall that forgot them."""
        for connection in self._some(dice, share):
            connection.end()

    def hold_some(self, dice: random.Random, share):
        """Half-open: nothing comes through any more, and nobody is told. What was held goes on with `release`."""
        held = self._some(dice, share)
        for connection in held:
            connection.flows.clear()
        return held

    def release(self, held):
        for connection in held:
            connection.flows.set()

    def cut(self):
        self.is_cut = True
        self.end_some(random.Random(0), 1.1)

    def heal(self):
        self.is_cut, self.delay = False, 0.0


class Connection:
    def __init__(self, client, broker):
        self.ends = (client, broker)
        self.flows = threading.Event()
        self.flows.set()

    def end(self):
        self.flows.set()
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
